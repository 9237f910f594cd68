

; Definitions
(class_declaration name: (_) @name) @definition.type
(protocol_declaration name: (_) @name) @definition.type
(typealias_declaration . name: (_) @name) @definition.type
(function_declaration (simple_identifier) @name) @definition.function
(protocol_function_declaration . name: (simple_identifier) @name) @definition.method
(init_declaration "init" @name) @definition.method
(source_file (property_declaration name: (pattern (simple_identifier) @name)) @definition.value)

; Imports
(import_declaration) @import
(import_declaration (identifier) @import.module)

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression
  target: (_) @receiver suffix: (navigation_suffix suffix: (simple_identifier) @call)))
(navigation_expression
  target: (_) @receiver suffix: (navigation_suffix suffix: (simple_identifier) @member))
(type_identifier) @type
(simple_identifier) @value
