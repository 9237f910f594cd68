

; Definitions
(function_declaration name: (identifier) @name) @definition.function
(function_declaration name: [(dot_index_expression) (method_index_expression)] @name) @definition.method
(assignment_statement
  (variable_list . name: (_) @name) (expression_list . value: (function_definition))) @definition.function

; Imports
(function_call
  name: (identifier) @_require
  arguments: (arguments . (string content: (string_content) @import.module))
  (#eq? @_require "require"))

; Fields, and what has no names
(ERROR) @opaque

; Uses
(function_call name: (identifier) @call)
(function_call name: (dot_index_expression table: (_) @receiver field: (_) @call))
(function_call name: (method_index_expression table: (_) @receiver method: (_) @call))
(dot_index_expression table: (_) @receiver field: (identifier) @member)
(identifier) @value
