

; Definitions
(class_declaration name: (_) @name) @definition.type
(object_declaration name: (_) @name) @definition.type
(type_alias type: (_) @name) @definition.type
(function_declaration name: (_) @name) @definition.function
(source_file (property_declaration (variable_declaration . (identifier) @name)) @definition.value)

; Imports
(import) @import
(import (qualified_identifier) @import.path (identifier)? @import.local)

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call_expression . (identifier) @call)
(call_expression . (navigation_expression . (_) @receiver (identifier) @call .))
(navigation_expression . (_) @receiver (identifier) @member .)
(identifier) @value
