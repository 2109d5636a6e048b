(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @class
(union_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name) @enum
(enum_variant name: (identifier) @name) @variable
(trait_item name: (type_identifier) @name) @interface
(impl_item type: [(type_identifier) @name (generic_type type: (type_identifier) @name) (scoped_type_identifier name: (type_identifier) @name)]) @implementation
(type_item name: (type_identifier) @name) @type_alias
(associated_type name: (type_identifier) @name) @type_alias
(mod_item name: (identifier) @name) @namespace
(macro_definition name: (identifier) @name) @macro
(const_item name: (identifier) @name) @variable
(static_item name: (identifier) @name) @variable
(field_declaration name: (field_identifier) @name) @variable
(function_item (visibility_modifier)) @exported
(struct_item (visibility_modifier)) @exported
(enum_item (visibility_modifier)) @exported
(trait_item (visibility_modifier)) @exported
(mod_item (visibility_modifier)) @exported
(const_item (visibility_modifier)) @exported
(type_item (visibility_modifier)) @exported
(static_item (visibility_modifier)) @exported
(use_declaration argument: [(identifier) (scoped_identifier)] @import)
(use_list [(identifier) (scoped_identifier)] @import)
(use_as_clause path: (_) @import)
(scoped_use_list path: (_) @import)
(use_wildcard [(identifier) (scoped_identifier)] @import)
[(identifier) (type_identifier) (field_identifier) (shorthand_field_identifier)] @ref
