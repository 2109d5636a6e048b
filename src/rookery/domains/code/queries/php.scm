(class_declaration name: (name) @name) @class
(trait_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @variable
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(namespace_definition name: (namespace_name (name) @name .)) @namespace
(const_declaration (const_element (name) @name) @variable)
(property_declaration (property_element (variable_name (name) @name))) @variable
[(class_declaration) (trait_declaration) (interface_declaration) (enum_declaration) (function_definition)] @exported
(method_declaration (visibility_modifier "public")) @exported
(property_declaration (visibility_modifier "public")) @exported
(namespace_use_clause [(name) (qualified_name)] @import)
(name) @ref
