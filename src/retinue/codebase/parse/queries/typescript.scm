; With ecmascript.scm.

; Definitions
(abstract_class_declaration name: (_) @name) @definition.type
(interface_declaration name: (_) @name) @definition.type
(type_alias_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.type
(internal_module name: (_) @name) @definition.module
(abstract_method_signature name: (_) @name) @definition.method
(public_field_definition name: (_) @name value: (arrow_function)) @definition.method
(class_heritage (extends_clause value: (_) @base))
(class_heritage (implements_clause (type_identifier) @base))
(function_declaration name: (_) @name return_type: (_) @returns)
(method_definition name: (_) @name return_type: (_) @returns)

; Scopes
[
  (interface_declaration) (type_alias_declaration) (function_signature) (method_signature)
  (abstract_method_signature) (internal_module)
] @scope
(interface_body) @scope.type

; Fields, and what has no names
(required_parameter (accessibility_modifier) pattern: (identifier) @field type: (_) @type_of)
(public_field_definition name: (_) @field type: (_)? @type_of value: (_)? @value)

; Bindings
(variable_declarator name: (identifier) @binding type: (_) @type_of)
(required_parameter pattern: (identifier) @binding type: (_)? @type_of)
(optional_parameter pattern: (identifier) @binding type: (_)? @type_of)
(type_parameter name: (type_identifier) @binding)
(function_signature name: (identifier) @binding)

; Uses
(call_expression function: (non_null_expression (identifier) @call))
(nested_type_identifier module: (_) @receiver name: (type_identifier) @type)
(type_identifier) @type
