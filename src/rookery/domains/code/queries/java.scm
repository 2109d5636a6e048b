(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @variable
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @variable
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @variable
(class_declaration (modifiers "public")) @exported
(record_declaration (modifiers "public")) @exported
(interface_declaration (modifiers "public")) @exported
(annotation_type_declaration (modifiers "public")) @exported
(enum_declaration (modifiers "public")) @exported
(method_declaration (modifiers "public")) @exported
(constructor_declaration (modifiers "public")) @exported
(field_declaration (modifiers "public")) @exported
(import_declaration [(identifier) (scoped_identifier)] @import)
[(identifier) (type_identifier)] @ref
