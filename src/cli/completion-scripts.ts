// SPDX-License-Identifier: Apache-2.0
// The scripts run the program for candidates, so they need no update when commands change. Each needs only its shell,
// can be loaded twice, and falls back to file names when the program returns no candidates.

export const COMPLETION_SHELLS = ['bash', 'zsh', 'fish'] as const;

const SCRIPTS: Readonly<Record<(typeof COMPLETION_SHELLS)[number], string>> = {
  bash: `# bash completion for pvescaler
_pvescaler() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(pvescaler complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _pvescaler pvescaler
`,
  zsh: `#compdef pvescaler
# zsh completion for pvescaler
_pvescaler() {
  local line value
  local -a described
  for line in "\${(@f)$(pvescaler complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    value=\${line%%$'\\t'*}
    if [[ $line == *$'\\t'* ]]; then
      described+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
    else
      described+=("\${value//:/\\\\:}")
    fi
  done
  if (( $#described )); then
    _describe pvescaler described
  else
    _files
  fi
}
compdef _pvescaler pvescaler
`,
  fish: `# fish completion for pvescaler
function __pvescaler_complete
    set -l words (commandline -opc) (commandline -ct)
    pvescaler complete -- $words[2..-1] 2>/dev/null
end
complete -c pvescaler -e
complete -c pvescaler -f -n 'test (count (__pvescaler_complete)) -gt 0' -a '(__pvescaler_complete)'
`,
};

export function completionScript(shell: (typeof COMPLETION_SHELLS)[number]): string {
  return SCRIPTS[shell];
}
