

; Definitions
(function_definition name: (word) @name) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.value
  (#match? @name "^[A-Z][A-Z0-9_]{2,}$"))

; Imports
(command
  name: (command_name) @_source . argument: (word) @import.module
  (#any-of? @_source "source" "."))

; Fields, and what has no names
(ERROR) @opaque

; Uses
(command name: (command_name (word) @call))
(variable_name) @value
