# bash completion for hone. Commands, options and knobs are asked of the program itself, so this file knows none of them.

_hone() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} prog=${COMP_WORDS[0]} cmd=${COMP_WORDS[1]}
    COMPREPLY=()
    command -v "$prog" >/dev/null 2>&1 || return
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "$("$prog" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p') --help --version" -- "$cur"))
        return
    fi
    case $prev in
    --route | --set)
        COMPREPLY=($(compgen -W "$("$prog" knobs --names 2>/dev/null | sed 's/.*/-&=/')" -- "$cur"))
        compopt -o nospace 2>/dev/null
        return
        ;;
    esac
    case $cur in
    -*) COMPREPLY=($(compgen -W "$("$prog" "$cmd" --help 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-zA-Z][a-zA-Z0-9-]*).*/\2/p' | sort -u)" -- "$cur")) ;;
    *) compopt -o default 2>/dev/null ;;
    esac
}
complete -F _hone hone
