; What JavaScript and TypeScript share.

; Definitions
(class_declaration name: (_) @name) @definition.type
(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(method_definition name: (_) @name) @definition.method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)])
  @definition.function
(assignment_expression left: (_) @name right: [(arrow_function) (function_expression)]) @definition.method
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @definition.method
(program (lexical_declaration "const"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.value))
(export_statement (lexical_declaration "const"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.value))
[(export_statement) (lexical_declaration)] @wrapper

; Scopes
[
  (function_declaration) (generator_function_declaration) (function_expression) (generator_function)
  (arrow_function) (method_definition) (class_static_block)
] @scope
[(statement_block) (for_statement) (for_in_statement) (switch_body) (catch_clause)] @scope.block
[(class_body) (object)] @scope.type

; Imports
(import_statement) @import
(export_statement source: (_)) @import
(import_statement (import_clause (identifier) @import.default) source: (_) @import.module)
(import_statement (import_clause (namespace_import (identifier) @import.local)) source: (_) @import.module)
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name alias: (_)? @import.local)))
  source: (_) @import.module)
(export_statement
  (export_clause (export_specifier name: (_) @export alias: (_)? @export.as)) source: (_)? @import.module)
(export_statement "*" @export.all source: (_) @import.module)
(export_statement value: (identifier) @export.default)
(variable_declarator
  name: (identifier) @import.local
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module))
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (shorthand_property_identifier_pattern) @import.name)
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module))
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (pair_pattern key: (_) @import.name value: (identifier) @import.local))
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module))
  (#eq? @_require "require"))

; Fields, and what has no names
(ERROR) @opaque

; Bindings
(lexical_declaration (variable_declarator name: (identifier) @binding value: (_)? @value))
(variable_declaration (variable_declarator name: (identifier) @binding.hoisted value: (_)? @value))
(variable_declaration (variable_declarator name: (array_pattern (identifier) @binding.hoisted)))
(variable_declaration
  (variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @binding.hoisted)))
(arrow_function parameter: (identifier) @binding)
(catch_clause parameter: (identifier) @binding)
(for_in_statement kind: "var" left: (identifier) @binding.hoisted)
(for_in_statement left: (identifier) @binding)
(function_expression name: (identifier) @binding)
(class name: (_) @binding)
(shorthand_property_identifier_pattern) @binding
(array_pattern (identifier) @binding)
(rest_pattern (identifier) @binding)
(assignment_pattern left: (identifier) @binding)
(pair_pattern value: (identifier) @binding)

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (member_expression object: (_) @receiver property: (_) @call))
(new_expression constructor: (identifier) @create)
(new_expression constructor: (member_expression object: (_) @receiver property: (_) @create))
(member_expression object: (_) @receiver property: (_) @member)
(export_specifier alias: (_) @ignored)
[(identifier) (shorthand_property_identifier)] @value
