

; Definitions
(class_definition name: (_) @name) @definition.type
(object_definition name: (_) @name) @definition.type
(trait_definition name: (_) @name) @definition.type
(enum_definition name: (_) @name) @definition.type
(type_definition name: (_) @name) @definition.type
(function_definition name: (_) @name) @definition.function
(function_declaration name: (_) @name) @definition.function
(extends_clause type: (_) @base)

; Imports
(import_declaration) @import
(import_declaration path: (identifier) @import.module)

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (field_expression value: (_) @receiver field: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(field_expression value: (_) @receiver field: (identifier) @member)
(type_identifier) @type
(identifier) @value
