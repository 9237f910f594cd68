"""What a definition is in each language that has a tree-sitter grammar: a table of queries.

`@name` is the defined name; the other capture is the whole definition and says of what sort it is. The
grammars come with the extra `code`; nothing here imports them.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple


class Grammar(NamedTuple):
    module: str
    """The package of the grammar."""
    function: str
    """What in it gives the language."""
    query: str


_PYTHON = """
(class_definition name: (_) @name) @type
(function_definition name: (_) @name) @function
(module (expression_statement
  (assignment left: (identifier) @name) @value (#match? @name "^[A-Z][A-Z0-9_]{2,}$")))
"""
_JAVASCRIPT = """
(class_declaration name: (_) @name) @type
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (_) @name right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration "const" (variable_declarator name: (identifier) @name) @value))
(export_statement (lexical_declaration "const" (variable_declarator name: (identifier) @name) @value))
"""
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(abstract_method_signature name: (_) @name) @function
(public_field_definition name: (_) @name value: (arrow_function)) @function
"""
)
_GO = """
(function_declaration name: (_) @name) @function
(method_declaration name: (_) @name) @function
(type_spec name: (_) @name) @type
(source_file (const_declaration (const_spec name: (_) @name) @value))
(source_file (var_declaration (var_spec name: (_) @name) @value))
"""
_RUST = """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(macro_definition name: (_) @name) @function
(struct_item name: (_) @name) @type
(enum_item name: (_) @name) @type
(union_item name: (_) @name) @type
(trait_item name: (_) @name) @type
(type_item name: (_) @name) @type
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name)]) @type
(mod_item name: (_) @name) @module
(static_item name: (_) @name) @value
(const_item name: (_) @name) @value
"""
_JAVA = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(record_declaration name: (_) @name) @type
(annotation_type_declaration name: (_) @name) @type
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
"""
_C = """
(function_declarator declarator: (identifier) @name) @named
(struct_specifier name: (_) @name body: (_)) @type
(union_specifier name: (_) @name body: (_)) @type
(enum_specifier name: (_) @name body: (_)) @type
(type_definition declarator: (type_identifier) @name) @type
(preproc_def name: (_) @name) @value
(preproc_function_def name: (_) @name) @function
"""
_CPP = (
    _C
    + """
(function_declarator declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name) @named
(class_specifier name: (_) @name body: (_)) @type
(namespace_definition name: (_) @name) @module
"""
)
_C_SHARP = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(struct_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(record_declaration name: (_) @name) @type
(delegate_declaration name: (_) @name) @type
(namespace_declaration name: (_) @name) @module
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(property_declaration name: (_) @name) @value
"""
_RUBY = """
(class name: (_) @name) @type
(module name: (_) @name) @module
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @value
"""
_PHP = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(trait_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(function_definition name: (_) @name) @function
(method_declaration name: (_) @name) @function
(const_element . (name) @name) @value
"""

_OF_SUFFIX: dict[str, Grammar] = {
    suffix: grammar
    for suffixes, grammar in (
        (".py .pyi", Grammar("tree_sitter_python", "language", _PYTHON)),
        (".js .jsx .mjs .cjs", Grammar("tree_sitter_javascript", "language", _JAVASCRIPT)),
        (".ts .mts .cts", Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT)),
        (".tsx", Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT)),
        (".go", Grammar("tree_sitter_go", "language", _GO)),
        (".rs", Grammar("tree_sitter_rust", "language", _RUST)),
        (".java", Grammar("tree_sitter_java", "language", _JAVA)),
        (".c", Grammar("tree_sitter_c", "language", _C)),
        (".h .cc .cpp .cxx .hpp .hh .hxx", Grammar("tree_sitter_cpp", "language", _CPP)),
        (".cs", Grammar("tree_sitter_c_sharp", "language", _C_SHARP)),
        (".rb .rake", Grammar("tree_sitter_ruby", "language", _RUBY)),
        (".php", Grammar("tree_sitter_php", "language_php", _PHP)),
    )
    for suffix in suffixes.split()
}


def grammar_for(path: str) -> Grammar | None:
    return _OF_SUFFIX.get(PurePosixPath(path).suffix.lower())
