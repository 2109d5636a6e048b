; A definition is captured by its kind, its name as @name; whatever else names something is a @ref.
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(type_alias_statement left: (type (identifier) @name)) @type_alias
(module (expression_statement (assignment left: (identifier) @name) @variable))
(module (expression_statement (assignment left: (pattern_list (identifier) @name)) @variable))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @variable)))
(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(import_from_statement module_name: [(dotted_name) (relative_import)] @import)
(import_from_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(future_import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
[(identifier) "__future__"] @ref
