"""Describes how each language binds names: its scopes, parameters, variables, calls and members.

The rules name node types of the tree-sitter grammars. `parsed_code` applies them. Nothing is claimed about
the names of a language without rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _fields(text: str) -> dict[str, tuple[str, ...]]:
    """Read `node:field,field node:*` into fields by node type. `*` stands for every child."""
    pairs = (word.partition(":") for word in text.split())
    return {node: tuple(fields.split(",")) for node, _, fields in pairs}


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """How one language binds and uses names."""

    scopes: frozenset[str]
    """Nodes whose names are not visible outside."""
    type_scopes: frozenset[str]
    """Those scopes that hold the members of a type."""
    binders: Mapping[str, tuple[str, ...]]
    """Nodes that bind a name, with the fields that hold it."""
    patterns: Mapping[str, tuple[str, ...]]
    """Nodes between a binder and the bound name, as in `(a, b) = pair`."""
    calls: Mapping[str, str]
    """Nodes of calls, with the field of what is called."""
    members: Mapping[str, tuple[str, str]]
    """Nodes such as `a.b`, with the fields of the object and of the name."""
    imports: frozenset[str]
    """Nodes of import statements."""
    types: frozenset[str] = frozenset()
    """Nodes below which a name is a type."""
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Nodes with fields that hold a name which refers to nothing, such as the keyword of an argument."""
    creates: Mapping[str, str] = field(default_factory=dict[str, str])
    """Nodes that create an object, with the field of its type."""
    members_are_in_scope: bool = False
    """Whether a method sees the other members of its type without a receiver."""
    typed_by: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Binders, with the fields of the declared type and of the value that they bind."""
    family: str = ""
    """The language, as `names` knows it."""


_PYTHON = ScopeRules(
    family="python",
    scopes=_words(
        "module function_definition lambda class_definition list_comprehension set_comprehension "
        "dictionary_comprehension generator_expression"
    ),
    type_scopes=_words("class_definition"),
    binders=_fields(
        "assignment:left augmented_assignment:left named_expression:name parameters:* lambda_parameters:* "
        "default_parameter:name typed_parameter:* typed_default_parameter:name for_statement:left "
        "for_in_clause:left as_pattern:alias case_pattern:* keyword_pattern:* splat_pattern:* "
        "type_alias_statement:left delete_statement:*"
    ),
    patterns=_fields(
        "pattern_list:* tuple_pattern:* list_pattern:* list_splat_pattern:* dictionary_splat_pattern:* "
        "as_pattern_target:* dotted_name:*"
    ),
    calls={"call": "function"},
    members={"attribute": ("object", "attribute")},
    imports=_words("import_statement import_from_statement future_import_statement"),
    types=_words("type"),
    ignored=_fields("keyword_argument:name"),
    typed_by={
        "typed_parameter": ("type", ""),
        "typed_default_parameter": ("type", ""),
        "assignment": ("type", "right"),
    },
)
_SCRIPT = ScopeRules(
    family="script",
    scopes=_words(
        "program function_declaration generator_function_declaration function_expression generator_function "
        "arrow_function method_definition class_body statement_block for_statement for_in_statement "
        "switch_body catch_clause class_static_block object interface_declaration type_alias_declaration "
        "interface_body function_signature method_signature abstract_method_signature internal_module"
    ),
    type_scopes=_words("class_body object interface_body"),
    binders=_fields(
        "variable_declarator:name required_parameter:pattern optional_parameter:pattern formal_parameters:* "
        "arrow_function:parameter catch_clause:parameter for_in_statement:left type_parameter:name "
        "function_expression:name class:name function_signature:name"
    ),
    patterns=_fields(
        "object_pattern:* array_pattern:* rest_pattern:* assignment_pattern:left "
        "object_assignment_pattern:left pair_pattern:value"
    ),
    calls={"call_expression": "function"},
    members={"member_expression": ("object", "property")},
    imports=_words("import_statement"),
    types=_words("type_annotation type_arguments extends_type_clause implements_clause"),
    creates={"new_expression": "constructor"},
    typed_by={
        "required_parameter": ("type", ""),
        "optional_parameter": ("type", ""),
        "variable_declarator": ("type", "value"),
    },
)
_GO = ScopeRules(
    family="go",
    scopes=_words(
        "source_file function_declaration method_declaration func_literal block if_statement for_statement "
        "expression_switch_statement type_switch_statement expression_case type_case default_case "
        "communication_case type_declaration"
    ),
    type_scopes=frozenset(),
    binders=_fields(
        "short_var_declaration:left range_clause:left var_spec:name const_spec:name "
        "parameter_declaration:name variadic_parameter_declaration:name type_parameter_declaration:name "
        "receive_statement:left type_switch_statement:alias"
    ),
    patterns=_fields("expression_list:*"),
    calls={"call_expression": "function"},
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    imports=_words("import_declaration"),
    ignored=_fields("keyed_element:key labeled_statement:label"),
    creates={"composite_literal": "type"},
    typed_by={
        "parameter_declaration": ("type", ""),
        "var_spec": ("type", "value"),
        "short_var_declaration": ("", "right"),
    },
)
_RUST = ScopeRules(
    family="rust",
    scopes=_words(
        "source_file mod_item function_item function_signature_item impl_item trait_item closure_expression "
        "block match_arm if_expression while_expression for_expression"
    ),
    type_scopes=_words("impl_item trait_item"),
    binders=_fields(
        "let_declaration:pattern parameter:pattern closure_parameters:* match_pattern:* "
        "for_expression:pattern let_condition:pattern type_parameter:name const_parameter:name "
        "type_parameters:*"
    ),
    patterns=_fields(
        "tuple_pattern:* tuple_struct_pattern:* struct_pattern:* field_pattern:* ref_pattern:* mut_pattern:* "
        "captured_pattern:* slice_pattern:* or_pattern:* reference_pattern:* remaining_field_pattern:*"
    ),
    calls={"call_expression": "function"},
    members={"field_expression": ("value", "field"), "scoped_identifier": ("path", "name")},
    imports=_words("use_declaration extern_crate_declaration"),
    ignored=_fields(
        "tuple_struct_pattern:type struct_pattern:type macro_invocation:macro lifetime:* attribute:*"
    ),
    creates={"struct_expression": "name"},
    typed_by={"parameter": ("type", ""), "let_declaration": ("type", "value")},
)
_JAVA = ScopeRules(
    family="java",
    scopes=_words(
        "program class_body interface_body enum_body annotation_type_body record_declaration "
        "method_declaration constructor_declaration compact_constructor_declaration lambda_expression block "
        "for_statement enhanced_for_statement try_with_resources_statement catch_clause "
        "switch_block_statement_group switch_rule class_declaration interface_declaration"
    ),
    type_scopes=_words("class_body interface_body enum_body annotation_type_body"),
    binders=_fields(
        "formal_parameter:name variable_declarator:name catch_formal_parameter:name "
        "enhanced_for_statement:name resource:name inferred_parameters:* lambda_expression:parameters "
        "type_parameter:* instanceof_expression:name type_pattern:* record_pattern_component:* "
        "enum_constant:name"
    ),
    patterns={},
    calls={"method_invocation": "name"},
    members={"field_access": ("object", "field"), "method_invocation": ("object", "name")},
    imports=_words("import_declaration package_declaration"),
    ignored=_fields("element_value_pair:key labeled_statement:*"),
    creates={"object_creation_expression": "type"},
    members_are_in_scope=True,
    typed_by={
        "formal_parameter": ("type", ""),
        "enhanced_for_statement": ("type", ""),
        "resource": ("type", "value"),
        "variable_declarator": ("", "value"),
        "local_variable_declaration": ("type", ""),
        "field_declaration": ("type", ""),
    },
)
_C = ScopeRules(
    family="c",
    scopes=_words(
        "translation_unit function_definition compound_statement for_statement preproc_function_def "
        "field_declaration_list lambda_expression namespace_definition class_specifier"
    ),
    type_scopes=_words("field_declaration_list class_specifier"),
    binders=_fields(
        "parameter_declaration:declarator declaration:declarator preproc_params:* preproc_def:name "
        "optional_parameter_declaration:declarator for_range_loop:declarator enumerator:name "
        "type_definition:declarator"
    ),
    patterns=_fields(
        "pointer_declarator:declarator array_declarator:declarator parenthesized_declarator:* "
        "init_declarator:declarator reference_declarator:* attributed_declarator:* "
        "function_declarator:declarator"
    ),
    calls={"call_expression": "function"},
    members={"field_expression": ("argument", "field"), "qualified_identifier": ("scope", "name")},
    imports=_words("preproc_include"),
    ignored=_fields("labeled_statement:label goto_statement:label"),
)
_RULES = {
    "tree_sitter_python": _PYTHON,
    "tree_sitter_javascript": _SCRIPT,
    "tree_sitter_typescript": _SCRIPT,
    "tree_sitter_go": _GO,
    "tree_sitter_rust": _RUST,
    "tree_sitter_java": _JAVA,
    "tree_sitter_c": _C,
    "tree_sitter_cpp": _C,
}


def scope_rules(grammar_module: str) -> ScopeRules | None:
    """Return the rules of the language that this grammar parses, or None if its names are not understood."""
    return _RULES.get(grammar_module)
