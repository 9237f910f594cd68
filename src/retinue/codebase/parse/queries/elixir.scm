

; Definitions
(call
  target: (identifier) @_define (arguments . (alias) @name)
  (#any-of? @_define "defmodule" "defprotocol" "defimpl")) @definition.module
(call
  target: (identifier) @_define (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name))
    (binary_operator left: (identifier) @name)
  ])
  (#any-of? @_define "def" "defp" "defmacro" "defmacrop" "defguard" "defdelegate")) @definition.function

; Imports
(call
  target: (identifier) @_import (arguments . (alias) @import.module)
  (#any-of? @_import "alias" "import" "require" "use")) @import

; Fields, and what has no names
(ERROR) @opaque

; Uses
(call target: (identifier) @call
  (#not-match? @call "^(def(p|macro|macrop|guard|delegate|module|protocol|impl)?|alias|import|require|use)$"))
(call target: (dot left: (_) @receiver right: (identifier) @call))
[(identifier) (alias)] @value
