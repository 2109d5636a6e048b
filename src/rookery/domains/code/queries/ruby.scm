(class name: [(constant) @name (scope_resolution name: (constant) @name)]) @class
(module name: [(constant) @name (scope_resolution name: (constant) @name)]) @namespace
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(alias name: (_) @name) @function
(assignment left: (constant) @name) @variable
[(identifier) (constant) (instance_variable) (class_variable) (global_variable)] @ref
