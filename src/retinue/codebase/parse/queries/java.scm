

; Definitions
(class_declaration name: (_) @name) @definition.type
(interface_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.type
(record_declaration name: (_) @name) @definition.type
(annotation_type_declaration name: (_) @name) @definition.type
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(method_declaration type: (_) @returns name: (_) @name)
(superclass [(type_identifier) @base (generic_type (type_identifier) @base)])
(super_interfaces (type_list [(type_identifier) @base (generic_type (type_identifier) @base)]))
(extends_interfaces (type_list [(type_identifier) @base (generic_type (type_identifier) @base)]))

; Scopes
[
  (class_body) (interface_body) (enum_body) (annotation_type_body) (record_declaration) (method_declaration)
  (constructor_declaration) (compact_constructor_declaration) (lambda_expression) (block) (for_statement)
  (enhanced_for_statement) (try_with_resources_statement) (catch_clause) (switch_block_statement_group)
  (switch_rule) (class_declaration) (interface_declaration)
] @scope

; Imports
[(import_declaration) (package_declaration)] @import
(import_declaration [(scoped_identifier) (identifier)] @import.path (asterisk)? @import.all)

; Fields, and what has no names
(field_declaration type: (_) @type_of declarator: (variable_declarator name: (identifier) @field))
(ERROR) @opaque

; Bindings
(formal_parameter type: (_) @type_of name: (identifier) @binding)
(local_variable_declaration type: (_) @type_of
  declarator: (variable_declarator name: (identifier) @binding value: (_)? @value))
(field_declaration type: (_) @type_of
  declarator: (variable_declarator name: (identifier) @binding value: (_)? @value))
(variable_declarator name: (identifier) @binding)
(catch_formal_parameter name: (identifier) @binding)
(enhanced_for_statement type: (_) @type_of name: (identifier) @binding)
(resource type: (_) @type_of name: (identifier) @binding value: (_)? @value)
(inferred_parameters (identifier) @binding)
(lambda_expression parameters: (identifier) @binding)
(type_parameter (type_identifier) @binding)
(instanceof_expression name: (identifier) @binding)
(type_pattern (identifier) @binding)
(record_pattern_component (identifier) @binding)
(enum_constant name: (identifier) @binding)

; Uses
(method_invocation object: (_)? @receiver name: (identifier) @call)
(object_creation_expression type: (type_identifier) @create)
(object_creation_expression type: (generic_type (type_identifier) @create))
(field_access object: (_) @receiver field: (identifier) @member)
(element_value_pair key: (_) @ignored)
(labeled_statement (identifier) @ignored)
(type_identifier) @type
(identifier) @value
