(class_declaration name: [(type_identifier) @name (user_type (type_identifier) @name)]) @class
(protocol_declaration name: (type_identifier) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @function
(typealias_declaration name: (type_identifier) @name) @type_alias
(enum_entry name: (simple_identifier) @name) @variable
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable)
(import_declaration (identifier) @import)
[(simple_identifier) (type_identifier)] @ref
