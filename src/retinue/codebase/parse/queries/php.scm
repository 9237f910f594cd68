

; Definitions
(class_declaration name: (_) @name) @definition.type
(interface_declaration name: (_) @name) @definition.type
(trait_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.type
(function_definition name: (_) @name) @definition.function
(method_declaration name: (_) @name) @definition.method
(const_element . (name) @name) @definition.value
(base_clause (_) @base)
(class_interface_clause (_) @base)

; Imports
(namespace_use_declaration) @import
(namespace_use_clause (name) @import.module)
(namespace_use_clause (qualified_name) @import.module)

; Fields, and what has no names
(ERROR) @opaque

; Uses
(function_call_expression function: (name) @call)
(member_call_expression object: (_) @receiver name: (name) @call)
(nullsafe_member_call_expression object: (_) @receiver name: (name) @call)
(scoped_call_expression scope: (_) @receiver name: (name) @call)
(object_creation_expression (name) @create)
(member_access_expression object: (_) @receiver name: (name) @member)
(class_constant_access_expression . (_) @receiver (name) @member)
(name) @value
