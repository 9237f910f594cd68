; With c.scm.

; Definitions
(function_definition declarator: (function_declarator
  declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name)) @definition.function
(function_definition declarator: (_ (function_declarator
  declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name))) @definition.function
(function_definition declarator: (_ (_ (function_declarator
  declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name)))) @definition.function
(field_declaration declarator: (function_declarator
  declarator: (field_identifier) @name)) @definition.function
(field_declaration declarator: (_ (function_declarator
  declarator: (field_identifier) @name))) @definition.function
(ERROR (function_declarator
  declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name) @definition.function)
(class_specifier name: (_) @name body: (_)) @definition.type
(namespace_definition name: (_) @name) @definition.module
(template_declaration) @wrapper

; Scopes
[(lambda_expression) (namespace_definition)] @scope
(class_specifier) @scope.type

; Bindings
(reference_declarator (identifier) @binding)
(optional_parameter_declaration declarator: (identifier) @binding)
(for_range_loop declarator: (identifier) @binding)

; Uses
(call_expression function: (qualified_identifier scope: (_) @receiver name: (identifier) @call))
(call_expression function: (template_function name: (identifier) @call))
(qualified_identifier scope: (_) @receiver name: (identifier) @member)
(function_declarator declarator: (qualified_identifier name: (_) @ignored))
(namespace_identifier) @value
