(function_definition declarator: (function_declarator declarator: (identifier) @name)) @function
(function_definition declarator: (pointer_declarator (function_declarator declarator: (identifier) @name))) @function
(function_definition declarator: (pointer_declarator (pointer_declarator (function_declarator declarator: (identifier) @name)))) @function
(translation_unit (declaration declarator: (function_declarator declarator: (identifier) @name)) @function)
(struct_specifier name: (type_identifier) @name body: (_)) @class
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(enumerator name: (identifier) @name) @variable
(type_definition declarator: (type_identifier) @name) @type_alias
(type_definition declarator: (pointer_declarator (type_identifier) @name)) @type_alias
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator (type_identifier) @name)))) @type_alias
(field_declaration declarator: [(field_identifier) @name (pointer_declarator (field_identifier) @name) (array_declarator (field_identifier) @name)]) @variable
(translation_unit (declaration declarator: [(identifier) @name (init_declarator declarator: (identifier) @name) (init_declarator declarator: (array_declarator (identifier) @name)) (init_declarator declarator: (pointer_declarator (identifier) @name)) (pointer_declarator (identifier) @name) (array_declarator (identifier) @name)]) @variable)
(preproc_def name: (identifier) @name) @macro
(preproc_function_def name: (identifier) @name) @macro
(preproc_include path: [(string_literal) (system_lib_string)] @import)
[(identifier) (type_identifier) (field_identifier)] @ref
