

; Definitions
(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(macro_definition name: (_) @name) @definition.macro
(struct_item name: (_) @name) @definition.type
(enum_item name: (_) @name) @definition.type
(union_item name: (_) @name) @definition.type
(trait_item name: (_) @name) @definition.type
(type_item name: (_) @name) @definition.type
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name)]) @definition.extension
(mod_item name: (_) @name) @definition.module
(static_item name: (_) @name value: (_)? @value) @definition.value
(const_item name: (_) @name value: (_)? @value) @definition.value
(function_item name: (_) @name return_type: (_) @returns)
(function_signature_item name: (_) @name return_type: (_) @returns)

; Scopes
[
  (function_item) (function_signature_item) (closure_expression) (block) (match_arm) (if_expression)
  (while_expression) (for_expression)
] @scope
[(impl_item) (trait_item)] @scope.type
(mod_item) @scope.module

; Imports
[(use_declaration) (extern_crate_declaration)] @import
(use_declaration argument: [(identifier) (scoped_identifier)] @import.path)
(use_list [(identifier) (scoped_identifier) (self)] @import.path)
(use_as_clause path: (_) @import.path alias: (_) @import.local)
(use_wildcard (_)? @import.path) @import.all

; Fields, and what has no names
(field_declaration name: (field_identifier) @field type: (_) @type_of)
[(token_tree) (ERROR)] @opaque

; Bindings
(let_declaration pattern: (identifier) @binding type: (_)? @type_of value: (_)? @value)
(parameter pattern: (identifier) @binding type: (_) @type_of)
(closure_parameters (identifier) @binding)
(for_expression pattern: (identifier) @binding)
(let_condition pattern: (identifier) @binding)
(match_pattern (identifier) @binding (#not-match? @binding "^[A-Z]"))
(tuple_pattern (identifier) @binding)
(tuple_struct_pattern (identifier) @binding)
(ref_pattern (identifier) @binding)
(mut_pattern (identifier) @binding)
(captured_pattern . (identifier) @binding)
(slice_pattern (identifier) @binding)
(or_pattern (identifier) @binding)
(reference_pattern (identifier) @binding)
(field_pattern name: (shorthand_field_identifier) @binding)
(field_pattern pattern: (identifier) @binding)
(type_parameter name: (_) @binding)
(const_parameter name: (_) @binding)

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (field_expression value: (_) @receiver field: (_) @call))
(call_expression function: (scoped_identifier path: (_) @receiver name: (_) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression
  function: (generic_function function: (field_expression value: (_) @receiver field: (_) @call)))
(call_expression
  function: (generic_function function: (scoped_identifier path: (_) @receiver name: (_) @call)))
(struct_expression name: (type_identifier) @create)
(struct_expression name: (scoped_type_identifier path: (_) @receiver name: (_) @create))
(field_expression value: (_) @receiver field: (field_identifier) @member)
(scoped_identifier path: (_) @receiver name: (_) @member)
(scoped_type_identifier path: (_) @receiver name: (_) @type)
(tuple_struct_pattern type: (identifier) @ignored)
(struct_pattern type: (type_identifier) @ignored)
(macro_invocation macro: (identifier) @ignored)
(lifetime (identifier) @ignored)
(attribute (identifier) @ignored)
(type_identifier) @type
(identifier) @value
