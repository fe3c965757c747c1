/** The shell scripts that ask `sandgate __complete` for the words that can be completed at the cursor. */

const bash = `# bash completion for sandgate
_sandgate() {
  local word before line
  # Bash takes the colon of SANDBOX:PATH for the end of a word.
  line=\${COMP_LINE:0:COMP_POINT}
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word=\${words[\${#words[@]}-1]}
  COMPREPLY=()
  if [[ \${words[1]} == cp && ( $word == [./~]* || $word == *:* ) ]]; then
    [[ $word == *:* ]] || compopt -o default
    return
  fi
  before=""
  [[ $word == *:* && $COMP_WORDBREAKS == *:* ]] && before=\${word%"\${word##*:}"}
  while IFS= read -r line; do
    COMPREPLY+=("\${line#"$before"}")
  done < <(\${words[0]} __complete -- "\${words[@]:1}" 2>/dev/null)
  [[ \${words[1]} == cp ]] && compopt -o nospace -o default
}
complete -F _sandgate sandgate
`;

const zsh = `#compdef sandgate
_sandgate() {
  local -a found
  found=("\${(@f)$(\${words[1]} __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if [[ \${words[2]} == cp ]]; then
    compadd -S '' -- $found
    _files
  else
    compadd -- $found
  fi
}
if [[ $funcstack[1] == _sandgate ]]; then _sandgate "$@"; else compdef _sandgate sandgate; fi
`;

const fish = `# fish completion for sandgate
function __sandgate_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c sandgate -f -a '(__sandgate_complete)'
complete -c sandgate -n '__fish_seen_subcommand_from cp' -F
`;

export const scripts = { bash, zsh, fish } as const;
