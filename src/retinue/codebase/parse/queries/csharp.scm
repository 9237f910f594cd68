

; Definitions
(class_declaration name: (_) @name) @definition.type
(interface_declaration name: (_) @name) @definition.type
(struct_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.type
(record_declaration name: (_) @name) @definition.type
(delegate_declaration name: (_) @name) @definition.type
(namespace_declaration name: (_) @name) @definition.module
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(local_function_statement name: (_) @name) @definition.function
(property_declaration name: (_) @name) @definition.value
(base_list [(identifier) (generic_name (identifier))] @base)

; Imports
(using_directive) @import
(using_directive !name [(qualified_name) (identifier)] @import.module) @import.all

; Fields, and what has no names
(ERROR) @opaque

; Uses
(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression expression: _ @receiver name: (identifier) @call))
(invocation_expression
  function: (member_access_expression expression: _ @receiver name: (generic_name (identifier) @call)))
(invocation_expression function: (conditional_access_expression
  condition: (_) @receiver (member_binding_expression name: (identifier) @call)))
(object_creation_expression type: (identifier) @create)
(member_access_expression expression: _ @receiver name: (identifier) @member)
(identifier) @value
