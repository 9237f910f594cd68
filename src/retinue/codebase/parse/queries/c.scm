

; Definitions
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(function_definition
  declarator: (_ (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition
  declarator: (_ (_ (function_declarator declarator: (identifier) @name)))) @definition.function
; Conditions of the preprocessor can unbalance braces: the function is then part of an error.
(ERROR (function_declarator declarator: (identifier) @name) @definition.function)
(ERROR (pointer_declarator (function_declarator declarator: (identifier) @name) @definition.function))
(struct_specifier name: (_) @name body: (_)) @definition.type
(union_specifier name: (_) @name body: (_)) @definition.type
(enum_specifier name: (_) @name body: (_)) @definition.type
(type_definition declarator: (type_identifier) @name) @definition.type
(preproc_def name: (_) @name) @definition.value
(preproc_function_def name: (_) @name) @definition.macro

; Scopes
[(function_definition) (compound_statement) (for_statement) (preproc_function_def)] @scope
(field_declaration_list) @scope.type

; Imports
(preproc_include) @import
(preproc_include path: (string_literal) @import.module) @import.all

; Fields, and what has no names
[(preproc_arg) (ERROR)] @opaque

; Bindings
(parameter_declaration declarator: (identifier) @binding)
(declaration declarator: (identifier) @binding)
(init_declarator declarator: (identifier) @binding)
(pointer_declarator declarator: (identifier) @binding)
(array_declarator declarator: (identifier) @binding)
(parenthesized_declarator (identifier) @binding)
(preproc_params (identifier) @binding)
(enumerator name: (identifier) @binding)

; Uses
(call_expression function: (identifier) @call)
(call_expression function: (field_expression argument: (_) @receiver field: (field_identifier) @call))
(field_expression argument: (_) @receiver field: (field_identifier) @member)
(function_declarator declarator: (identifier) @ignored)
(type_identifier) @type
(identifier) @value
