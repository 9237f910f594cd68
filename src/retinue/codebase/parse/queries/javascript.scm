; With ecmascript.scm.

; Definitions
(class_declaration (class_heritage (_) @base))

; Bindings
(formal_parameters (identifier) @binding)
(formal_parameters (assignment_pattern left: (identifier) @binding))
