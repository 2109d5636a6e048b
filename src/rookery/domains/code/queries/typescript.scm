[(class_declaration name: (type_identifier) @name) (abstract_class_declaration name: (type_identifier) @name)] @class
(class name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(type_alias_declaration name: (type_identifier) @name) @type_alias
(enum_declaration name: (identifier) @name) @enum
(enum_body name: (property_identifier) @name @variable)
(enum_assignment name: (property_identifier) @name) @variable
(internal_module name: (identifier) @name) @namespace
(module name: (identifier) @name) @namespace
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(function_signature name: (identifier) @name) @function
(function_expression name: (identifier) @name) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @method
(method_signature name: [(property_identifier) (private_property_identifier)] @name) @method
(abstract_method_signature name: [(property_identifier) (private_property_identifier)] @name) @method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @variable
(property_signature name: (property_identifier) @name) @variable
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(assignment_expression left: (member_expression property: (property_identifier) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(pair key: (string (string_fragment) @name) value: [(arrow_function) (function_expression) (generator_function)]) @method
(method_definition name: (string (string_fragment) @name)) @method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(assignment_expression left: (identifier) @name right: [(arrow_function) (function_expression) (generator_function)]) @function
(export_statement declaration: (_) @exported)
(export_statement declaration: (lexical_declaration (variable_declarator) @exported))
(export_statement declaration: (ambient_declaration (_) @exported))
(import_statement source: (string) @import)
(import_clause (identifier) @import)
(import_specifier name: (identifier) @import)
(namespace_import (identifier) @import)
(export_statement source: (string) @import)
(export_specifier name: (identifier) @export)
(export_statement value: (identifier) @export)
[(identifier) (type_identifier) (property_identifier) (private_property_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @ref
