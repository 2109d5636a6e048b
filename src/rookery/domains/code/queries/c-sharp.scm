(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_member_declaration name: (identifier) @name) @variable
(delegate_declaration name: (identifier) @name) @type_alias
(namespace_declaration name: [(identifier) @name (qualified_name name: (identifier) @name)]) @namespace
(file_scoped_namespace_declaration name: [(identifier) @name (qualified_name name: (identifier) @name)]) @namespace
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(destructor_declaration name: (identifier) @name) @method
(local_function_statement name: (identifier) @name) @function
(property_declaration name: (identifier) @name) @variable
(event_declaration name: (identifier) @name) @variable
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @variable
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @variable
(class_declaration (modifier "public")) @exported
(struct_declaration (modifier "public")) @exported
(record_declaration (modifier "public")) @exported
(interface_declaration (modifier "public")) @exported
(enum_declaration (modifier "public")) @exported
(delegate_declaration (modifier "public")) @exported
(method_declaration (modifier "public")) @exported
(constructor_declaration (modifier "public")) @exported
(property_declaration (modifier "public")) @exported
(field_declaration (modifier "public")) @exported
(using_directive [(identifier) (qualified_name)] @import)
(identifier) @ref
