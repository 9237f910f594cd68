

; Definitions
(function_declaration name: (_) @name) @definition.function
(variable_declaration . (identifier) @name
  [(struct_declaration) (enum_declaration) (union_declaration)]) @definition.type
(source_file (variable_declaration . (identifier) @name) @definition.value)

; Imports
(variable_declaration
  . (identifier) @import.local
  (builtin_function (builtin_identifier) @_import (arguments (string (string_content) @import.module)))
  (#eq? @_import "@import"))

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (field_expression object: (_) @receiver member: (identifier) @call))
(identifier) @value
