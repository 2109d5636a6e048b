(class_definition name: (identifier) @name) @class
(object_definition name: (identifier) @name) @class
(trait_definition name: (identifier) @name) @interface
(enum_definition name: (identifier) @name) @enum
(type_definition name: (type_identifier) @name) @type_alias
(function_definition name: [(identifier) (operator_identifier)] @name) @function
(function_declaration name: [(identifier) (operator_identifier)] @name) @function
(template_body (val_definition pattern: (identifier) @name) @variable)
(template_body (var_definition pattern: (identifier) @name) @variable)
(compilation_unit (val_definition pattern: (identifier) @name) @variable)
[(identifier) (type_identifier) (operator_identifier)] @ref
