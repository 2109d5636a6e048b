(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (operator_name) (destructor_name)] @name)) @function
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (_) @container name: [(identifier) (operator_name) (destructor_name)] @name))) @method
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (qualified_identifier scope: (_) @container name: [(identifier) (operator_name) (destructor_name)] @name)))) @method
(function_definition declarator: (_ (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))) @function
(function_definition declarator: (_ (function_declarator declarator: (qualified_identifier scope: (_) @container name: [(identifier) (operator_name)] @name)))) @method
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name)) @method
(field_declaration declarator: (_ (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @method
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)) @function
(class_specifier name: [(type_identifier) @name (template_type name: (type_identifier) @name)] body: (_)) @class
(struct_specifier name: [(type_identifier) @name (template_type name: (type_identifier) @name)] body: (_)) @class
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(enumerator name: (identifier) @name) @variable
(namespace_definition name: (namespace_identifier) @name) @namespace
(namespace_definition name: (nested_namespace_specifier (namespace_identifier) @name .)) @namespace
(type_definition declarator: (type_identifier) @name) @type_alias
(alias_declaration name: (type_identifier) @name) @type_alias
(concept_definition name: (identifier) @name) @interface
(field_declaration declarator: [(field_identifier) @name (pointer_declarator (field_identifier) @name) (array_declarator (field_identifier) @name)]) @variable
(translation_unit (declaration declarator: [(identifier) @name (init_declarator declarator: (identifier) @name)]) @variable)
(declaration_list (declaration declarator: [(identifier) @name (init_declarator declarator: (identifier) @name)]) @variable)
(preproc_def name: (identifier) @name) @macro
(preproc_function_def name: (identifier) @name) @macro
(preproc_include path: [(string_literal) (system_lib_string)] @import)
[(identifier) (type_identifier) (field_identifier) (namespace_identifier) (operator_name) (destructor_name)] @ref
