

; Definitions
(class name: (_) @name) @definition.type
(module name: (_) @name) @definition.module
(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(assignment left: (constant) @name) @definition.value
(superclass (_) @base)

; Imports
(call method: (identifier) @_require arguments: (argument_list . (string (string_content) @import.module))
  (#any-of? @_require "require" "require_relative" "load")) @import

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call !receiver method: (_) @call)
(call receiver: (_) @receiver method: (_) @call)
(scope_resolution scope: (_) @receiver name: (constant) @member)
[(identifier) (constant)] @value
