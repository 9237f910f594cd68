

; Definitions
(class_definition name: (identifier) @name) @definition.type
(function_definition name: (identifier) @name) @definition.function
(module (expression_statement
  (assignment left: (identifier) @name right: (_)? @value) @definition.value
  (#match? @name "^[A-Z][A-Z0-9_]{2,}$")))
(decorated_definition) @wrapper
(class_definition superclasses: (argument_list [(identifier) (attribute)] @base))
(function_definition name: (identifier) @name return_type: (_) @returns)

; Scopes
[(function_definition) (lambda)] @scope
(class_definition) @scope.type
[(list_comprehension) (set_comprehension) (dictionary_comprehension) (generator_expression)] @scope.block

; Imports
[(import_statement) (import_from_statement) (future_import_statement)] @import
(import_statement name: (dotted_name . (identifier) @import.module @import.local))
(import_statement name: (aliased_import name: (_) @import.module alias: (_) @import.local))
(import_from_statement module_name: (_) @import.module name: (dotted_name) @import.name)
(import_from_statement
  module_name: (_) @import.module
  name: (aliased_import name: (_) @import.name alias: (_) @import.local))
(import_from_statement module_name: (_) @import.module (wildcard_import) @import.all)

; Fields, and what has no names
(assignment
  left: (attribute object: (identifier) attribute: (identifier) @field)
  type: (_)? @type_of right: (_)? @value)
(class_definition body: (block (expression_statement
  (assignment left: (identifier) @field type: (_)? @type_of right: (_)? @value))))
(ERROR) @opaque

; Bindings
(assignment left: (identifier) @binding type: (_)? @type_of right: (_)? @value)
(augmented_assignment left: (identifier) @binding)
(named_expression name: (identifier) @binding.hoisted)
(parameters (identifier) @binding)
(lambda_parameters (identifier) @binding)
(default_parameter name: (identifier) @binding)
(typed_parameter . (identifier) @binding type: (_) @type_of)
(typed_default_parameter name: (identifier) @binding type: (_) @type_of)
(for_statement left: (identifier) @binding)
(for_in_clause left: (identifier) @binding)
(pattern_list (identifier) @binding)
(tuple_pattern (identifier) @binding)
(list_pattern (identifier) @binding)
(list_splat_pattern (identifier) @binding)
(dictionary_splat_pattern (identifier) @binding)
(as_pattern_target (identifier) @binding)
(as_pattern . (_) @origin alias: (as_pattern_target (identifier) @binding))
(case_pattern (dotted_name . (identifier) @binding .))
(splat_pattern (identifier) @binding)
(type_alias_statement left: (type (identifier) @binding))
(delete_statement (identifier) @binding)
(global_statement (identifier) @binding.global)
(nonlocal_statement (identifier) @binding.global)

; Uses
(call function: (identifier) @call)
(call function: (attribute object: (_) @receiver attribute: (identifier) @call))
(attribute object: (_) @receiver attribute: (identifier) @member)
(type (identifier) @type)
(type (binary_operator (identifier) @type))
(type (binary_operator (binary_operator (identifier) @type)))
(generic_type (identifier) @type)
(keyword_argument name: (identifier) @ignored)
(identifier) @value
