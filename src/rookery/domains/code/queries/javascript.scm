(class_declaration name: (identifier) @name) @class
(class name: (identifier) @name) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(function_expression name: (identifier) @name) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @method
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @variable
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(assignment_expression left: (member_expression property: (property_identifier) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: (identifier) @name right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(pair key: (string (string_fragment) @name) value: [(arrow_function) (function_expression) (generator_function)]) @method
(method_definition name: (string (string_fragment) @name)) @method
(field_definition property: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(export_statement declaration: (_) @exported)
(export_statement declaration: (lexical_declaration (variable_declarator) @exported))
(import_statement source: (string) @import)
(import_clause (identifier) @import)
(import_specifier name: (identifier) @import)
(namespace_import (identifier) @import)
(export_statement source: (string) @import)
(export_specifier name: (identifier) @export)
(export_statement value: (identifier) @export)
[(identifier) (property_identifier) (private_property_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @ref
