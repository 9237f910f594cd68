

; Definitions
(function_declaration name: (_) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (generic_type type: (type_identifier) @owner)
    (pointer_type (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))
  ]))
  name: (_) @name) @definition.method
(type_spec name: (_) @name) @definition.type
(source_file (const_declaration (const_spec name: (_) @name) @definition.value))
(source_file (var_declaration (var_spec name: (_) @name) @definition.value))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @definition.value)))
(function_declaration name: (_) @name result: (_) @returns)
(method_declaration name: (_) @name result: (_) @returns)

(type_spec type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base))))
(type_spec type: (interface_type (type_elem (_) @base)))

; Scopes
[
  (function_declaration) (method_declaration) (func_literal) (block) (if_statement) (for_statement)
  (expression_switch_statement) (type_switch_statement) (expression_case) (type_case) (default_case)
  (communication_case) (type_declaration)
] @scope

; Imports
(import_declaration) @import
(import_spec . path: (_) @import.module)
(import_spec name: (package_identifier) @import.local path: (_) @import.module)
(import_spec name: (dot) @import.all path: (_) @import.module)

; Fields, and what has no names
(var_spec name: (identifier) @name type: (_) @type_of)
(var_spec . name: (identifier) @name value: (expression_list . (_) @value))
(field_declaration name: (field_identifier) @field type: (_) @type_of)
(ERROR) @opaque

; Bindings
(short_var_declaration
  left: (expression_list . (identifier) @binding) right: (expression_list . (_) @value))
(short_var_declaration
  left: (expression_list . (_) . (identifier) @binding)
  right: (expression_list . (_) . (_) @value))
(short_var_declaration left: (expression_list (identifier) @binding))
(range_clause left: (expression_list (identifier) @binding))
(receive_statement left: (expression_list (identifier) @binding))
(type_switch_statement alias: (expression_list (identifier) @binding))
(var_spec . name: (identifier) @binding value: (expression_list . (_) @value))
(var_spec name: (identifier) @binding type: (_)? @type_of)
(const_spec name: (identifier) @binding)
(parameter_declaration name: (identifier) @binding type: (_) @type_of)
(variadic_parameter_declaration name: (identifier) @binding)
(type_parameter_declaration name: (identifier) @binding)

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression operand: (_) @receiver field: (_) @call))
(composite_literal type: (type_identifier) @create)
(composite_literal type: (qualified_type package: (_) @receiver name: (_) @create))
(qualified_type package: (_) @receiver name: (_) @type)
(selector_expression operand: (_) @receiver field: (_) @member)
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @ignored
  (generic_type type: (type_identifier) @ignored)
  (pointer_type (type_identifier) @ignored)
  (pointer_type (generic_type type: (type_identifier) @ignored))
])))
(keyed_element . (literal_element (identifier) @ignored))
(type_identifier) @type
[(identifier) (package_identifier)] @value
