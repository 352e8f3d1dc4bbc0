//! Source text that parses: whole functions with statements that can take each other's place.

use std::fmt::Write as _;

use ast_grep_language::SupportLang as Grammar;

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

pub(crate) const NOUNS: &[&str] = &[
    "account", "batch", "buffer", "cache", "channel", "client", "config", "cursor", "entry",
    "event", "filter", "frame", "handler", "header", "index", "item", "job", "key", "layer",
    "limit", "manager", "message", "node", "offset", "order", "packet", "page", "parser", "path",
    "payload", "queue", "ticket", "request", "response", "route", "schema", "session", "state",
    "stream", "token", "user", "value", "window", "worker",
];
pub(crate) const VERBS: &[&str] = &[
    "add", "apply", "build", "check", "clear", "close", "collect", "copy", "count", "create",
    "decode", "drop", "encode", "fetch", "find", "format", "handle", "load", "merge", "open",
    "parse", "read", "render", "reset", "resolve", "run", "save", "send", "split", "update",
    "validate", "write",
];

/// A language: what its files are made of. In every text `$n` stands for a noun, `$N` for one with a capital, `$v` for a verb, `$V`
/// for one with a capital and `$d` for a number. A line that is only `@` is a statement; it is indented like the `@`.
pub(crate) struct Language {
    /// The end of its files' names.
    pub(crate) end: &'static str,
    /// The grammar that its files parse by without an error.
    pub(crate) grammar: Option<Grammar>,
    /// The first and the last lines of a file.
    around: (&'static str, &'static str),
    functions: &'static [&'static str],
    statements: &'static [&'static str],
    /// One statement in [`RARELY`]: what rules stop at to look twice.
    rare: &'static [&'static str],
    /// One statement in [`SELDOM`]: what rules report.
    faults: &'static [&'static str],
}

const RARELY: usize = 60;
const SELDOM: usize = 2_000;

pub(crate) const LANGUAGES: &[Language] = &[
    Language {
        end: "ts",
        grammar: Some(Grammar::TypeScript),
        around: (
            "import { $N, $N } from './$n';\nimport type { $N } from '../$n/$v';\n\n",
            "export default { $v: '$n' };\n",
        ),
        functions: &[
            "/** Gives the $n after the $n was closed. */\nexport async function $v$N($n: string, limit: number): Promise<boolean> {\n  @\n  @\n  if (limit > $d) {\n    @\n    return $v$N($n, $d);\n  }\n  @\n  @\n  @\n  return true;\n}\n\n",
            "export class $N$d {\n  private readonly $n = new Map<string, number>();\n\n  async $v(request: $N): Promise<void> {\n    @\n    for (const each of this.$n.values()) {\n      @\n      @\n    }\n    @\n    @\n  }\n\n  get size(): number {\n    @\n    return this.$n.size;\n  }\n}\n\n",
            "export const $v$N = ($n: readonly string[]) => {\n  @\n  @\n  @\n  return $n.map((one) => one.trim());\n};\n\n",
        ],
        statements: &[
            "const $n$d = await $v$N(input.$n, { $n: $d, retry: true });",
            "if (options.$n === undefined || options.$n.length > $d) throw new Error('cannot $v the $n');",
            "// The $n has to $v the $n before the $n is closed.",
            "const { $n, $n: $n$d } = $v$N(options.$n);",
            "results.push($v$N(options.$n, $d));",
            "state.$n = state.$n.filter((one) => one.$n !== $d);",
            "await Promise.all(options.$n.map(async (one) => $v$N(one)));",
        ],
        rare: &[
            "const rows = await db.query('SELECT $n FROM $n WHERE id = ?', [options.$n]);",
            "const label = '$n' + options.name + ' of ' + options.$n;",
            "log.info(`$v ${options.$n} of ${options.$n.length}`);",
            "const token = process.env.$N_TOKEN ?? '';",
        ],
        faults: &[
            "const $n$d = await db.query(`SELECT * FROM $n WHERE id = ${options.$n}`);",
            "debugger;",
        ],
    },
    Language {
        end: "py",
        grammar: Some(Grammar::Python),
        around: (
            "\"\"\"The $n of a $n.\"\"\"\n\nimport json\nimport os\n\nfrom .$n import $N, $v_$n\n\n\n",
            "if __name__ == \"__main__\":\n    $v_$n()\n",
        ),
        functions: &[
            "def $v_$n($n, limit=None):\n    \"\"\"$V the $n of a $n, at most $d at a time.\"\"\"\n    @\n    @\n    if limit is None or len($n) > $d:\n        @\n        return [$v_$n(one) for one in $n]\n    @\n    @\n    return limit\n\n\n",
            "class $N$d:\n    \"\"\"A $n that can $v.\"\"\"\n\n    def __init__(self, $n):\n        self.$n = $n\n        @\n\n    def $v(self, *names):\n        @\n        for name in names:\n            @\n            @\n        @\n        return self.$n\n\n\n",
            "def $v_all(paths):\n    @\n    with open(paths[0], encoding=\"utf-8\") as source:\n        @\n        @\n    @\n    return len(paths)\n\n\n",
        ],
        statements: &[
            "$n = settings.$n.$v(limit=$d)",
            "$n_$d = json.loads(settings.$n)[\"$n\"]",
            "# A $n without $n is left as it is.",
            "results.append($v_$n(settings.$n, $d))",
            "if not settings.$n: raise ValueError(f\"cannot $v {settings.$n!r}\")",
            "$n, $n_$d = $v_$n(settings), settings.get(\"$n\", $d)",
            "logger.debug(\"$v the %s of %d\", settings.$n, $d)",
        ],
        rare: &[
            "cursor.execute(\"SELECT $n FROM $n WHERE id = %s\", (settings.$n,))",
            "subprocess.run([\"$n\", \"--$v\", settings.$n], check=True)",
            "password = os.environ[\"$N_PASSWORD\"]",
        ],
        faults: &[
            "cursor.execute(f\"SELECT $n FROM $n WHERE id = {settings.$n}\")",
            "requests.get(settings.$n, verify=False)",
        ],
    },
    Language {
        end: "go",
        grammar: Some(Grammar::Go),
        around: (
            "package $n\n\nimport (\n\t\"context\"\n\t\"fmt\"\n)\n\n",
            "var _ = fmt.Errorf\n",
        ),
        functions: &[
            "// $V$N waits until the $n is done.\nfunc (s *$NServer) $V$N$d(ctx context.Context, $n string) (*$N, error) {\n\t@\n\t@\n\tif err != nil {\n\t\t@\n\t\treturn nil, fmt.Errorf(\"$v $n: %w\", err)\n\t}\n\t@\n\t@\n\treturn s.$n, nil\n}\n\n",
            "type $N$d struct {\n\t$n string\n\t$v func() int\n}\n\n",
            "func $v$N$d(items []string, limit int) int {\n\t@\n\tfor _, item := range items {\n\t\t@\n\t\t@\n\t}\n\t@\n\tdefer s.$n.Close()\n\treturn limit\n}\n\n",
        ],
        statements: &[
            "$n$d, err := s.$n.$V(ctx, $n, $d)",
            "s.$n = append(s.$n, $v$N(ctx, $d))",
            "if s.$n == nil || len(s.$n) > $d { return }",
            "// The $n is kept while the $n is open.",
            "s.$n.$V(ctx, map[string]int{\"$n\": $d, \"$n\": $d})",
            "go func() { s.$n <- $v$N($d) }()",
        ],
        rare: &[
            "rows, err := db.QueryContext(ctx, \"SELECT $n FROM $n WHERE id = ?\", s.$n)",
            "name := fmt.Sprintf(\"%s-%d\", s.$n, $d)",
            "cmd := exec.CommandContext(ctx, \"$n\", \"$v\")",
        ],
        faults: &[
            "rows, err := db.QueryContext(ctx, fmt.Sprintf(\"SELECT $n FROM $n WHERE id = '%s'\", s.$n))",
            "tlsConfig := &tls.Config{InsecureSkipVerify: true}",
        ],
    },
    Language {
        end: "rs",
        grammar: Some(Grammar::Rust),
        around: (
            "//! The $n of a $n.\n\nuse std::collections::BTreeMap;\nuse crate::$n::{$N, $N$d};\n\n",
            "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n",
        ),
        functions: &[
            "/// The $n that was asked for, unless it was closed before.\npub fn $v_$n($n: &str, limit: usize) -> Result<$N, Error> {\n    @\n    @\n    if $n.len() > limit || $n.is_empty() {\n        @\n        return Err(Error::$N { at: $d });\n    }\n    @\n    @\n    Ok($N::default())\n}\n\n",
            "#[derive(Debug, Clone, Default)]\npub struct $N$d {\n    $n: BTreeMap<String, usize>,\n    /// How often it was asked.\n    count: u64,\n}\n\nimpl $N$d {\n    pub(crate) fn $v(&mut self, names: &[String]) -> Option<usize> {\n        @\n        for name in names {\n            @\n            @\n        }\n        @\n        self.$n.get(\"$n\").copied()\n    }\n}\n\n",
            "fn $v_all(values: Vec<$N>) -> usize {\n    @\n    let total = match values.len() {\n        0 => 0,\n        some => {\n            @\n            some + $d\n        }\n    };\n    @\n    total\n}\n\n",
        ],
        statements: &[
            "let $n = state.$n.$v($d)?;",
            "let $n: Vec<_> = state.$n.iter().filter(|one| one.$n > $d).collect();",
            "// The $n is read once and kept while the $n is open.",
            "state.$n.push($v_$n(&state.$n, $d)?);",
            "if state.$n.is_empty() { return Err(Error::$N { at: $d }.into()); }",
            "let Some($n) = state.$n.get($d).cloned() else { continue };",
            "tracing::debug!($n = $d, \"$v the $n\");",
        ],
        rare: &[
            "let name = format!(\"$n-{}\", state.$n);",
            "let row = sqlx::query(\"SELECT $n FROM $n WHERE id = ?\").bind(state.$n);",
            "let secret = std::env::var(\"$N_SECRET\")?;",
        ],
        faults: &[
            "let $n = dbg!(state.$n.$v($d));",
            "let row = sqlx::query(&format!(\"SELECT $n FROM $n WHERE id = '{}'\", state.$n));",
        ],
    },
    Language {
        end: "java",
        grammar: Some(Grammar::Java),
        around: (
            "package com.example.$n;\n\nimport java.util.Collections;\nimport java.util.List;\n\n/** The $n of a $n. */\npublic final class $N$d {\n",
            "}\n",
        ),
        functions: &[
            "    /** Gives the $n after the $n was closed. */\n    public List<String> $v$N$d(final String $n, int limit) throws IOException {\n        @\n        @\n        if ($n == null || limit > $d) {\n            @\n            return Collections.emptyList();\n        }\n        @\n        @\n        return this.$n;\n    }\n\n",
            "    private static final int $N_$d = $d;\n\n    private <T extends $N> void $v$N(Map<String, T> all) {\n        @\n        for (var each : all.values()) {\n            @\n            @\n        }\n        @\n    }\n\n",
            "    @Override\n    public String toString() {\n        @\n        try {\n            @\n            @\n        } catch (IOException | RuntimeException error) {\n            throw new IllegalStateException(\"no $n\", error);\n        }\n        return \"$n\";\n    }\n\n",
        ],
        statements: &[
            "final var $n$d = this.$n.$v(options.$n, $d);",
            "results.add($v$N(options.$n, $d));",
            "// The $n has to be open before the $n is.",
            "if (options.$n == null || options.$n.size() > $d) throw new IllegalStateException(\"no $n\");",
            "List<String> $n$d = options.$n.stream().filter(one -> one.$n() > $d).toList();",
            "this.$n = new $N(options.$n, $d).$v();",
        ],
        rare: &[
            "String label = \"$n \" + options.getName();",
            "PreparedStatement s = c.prepareStatement(\"SELECT $n FROM $n WHERE id = ?\");",
        ],
        faults: &[
            "ResultSet r = s.executeQuery(\"SELECT $n FROM $n WHERE id = '\" + options.$n + \"'\");",
            "if (options.$n == \"$n\") results.clear();",
        ],
    },
    Language {
        end: "sh",
        grammar: Some(Grammar::Bash),
        around: (
            "#!/usr/bin/env bash\n# $V every $n of the $n.\nset -euo pipefail\n\n",
            "$v_$n \"$@\"\n",
        ),
        functions: &[
            "$v_$n() {\n  local name=\"$1\"\n  @\n  if [ ! -f \"$name/$v.conf\" ]; then\n    @\n    echo \"no $n: $name\" >&2\n  fi\n  @\n  @\n}\n\n",
            "for name in $v $v $v; do\n  @\n  @\n  case \"$name\" in\n    $n) echo \"$n\" ;;\n    *) exit $d ;;\n  esac\n  @\ndone\n\n",
        ],
        statements: &[
            "$v --$n=\"$name\" \"$@\" || return $d",
            "$n=\"$(basename \"$name\" .$n)\"",
            "echo \"$v the $n of $name\" >&2",
            "# The $n is kept while the $n is open.",
            "[ -z \"${name:-}\" ] || $v \"$name\" | sort -u >\"/tmp/$n.$d\"",
            "find \"$name\" -name '*.$n' -exec $v {} +",
        ],
        rare: &["curl -fsS \"https://$n.example.com/$v\" -o \"$name\""],
        faults: &[
            "curl -k \"https://$n.example.com/$v\" -o \"$name\"",
            "eval \"$name\"",
        ],
    },
    Language {
        end: "yaml",
        grammar: Some(Grammar::Yaml),
        around: ("# The $n of the $n\n$n_0:\n", "last: true\n"),
        functions: &[
            "$n_$d:\n  @\n  @\n  steps:\n    - name: $v the $n\n      @\n      @\n    - $v\n",
            "\n# for the $n\n$v_$d:\n  $n:\n    @\n    @\n    @\n",
        ],
        statements: &[
            "$n_$d: $d",
            "$v_$d: \"$v-$n-$d\"",
            "$n$d: [$n, $n, \"$v\"]",
            "enabled_$d: true # for the $n only",
        ],
        rare: &["password_$d: ${$N_PASSWORD}", "image_$d: $n/$v:1.$d"],
        faults: &["insecure_skip_verify: true"],
    },
    Language {
        end: "md",
        grammar: None,
        around: ("# The $n\n\n", "See also [the $n](../$n/$v.md).\n"),
        functions: &["## The $n and the $n\n\n@\n@\n@\n\n@\n@\n\n@\n\n"],
        statements: &[
            "The $n is read once and kept while the $n is open; $v it again to see a newer $n.",
            "- `$v-$n`: how many of each $n are kept (default $d)",
            "See [the $n](../$n/$v.md#$n) for what a $n may hold.",
        ],
        rare: &["    curl -fsSL https://$n.example.com/$v.sh -o $v.sh"],
        faults: &["<<<<<<< $n"],
    },
];

/// One line of a file, with its line feed.
pub(crate) struct Line {
    pub(crate) text: String,
    /// Where it is a statement: its indentation. Any other statement can stand there.
    indent: Option<&'static str>,
}

impl Line {
    /// Puts another statement there. False where the line is a part of something larger.
    pub(crate) fn replace(&mut self, random: &mut Random, language: &Language) -> bool {
        if let Some(indent) = self.indent {
            self.text = statement(random, language, indent);
        }
        self.indent.is_some()
    }
}

/// A file of at least `count` lines, and not many more.
pub(crate) fn file(random: &mut Random, language: &Language, count: usize) -> Vec<Line> {
    let mut lines = Vec::with_capacity(count + 30);
    block(random, language, language.around.0, &mut lines);
    while lines.len() < count {
        let function = random.of(language.functions);
        block(random, language, function, &mut lines);
    }
    block(random, language, language.around.1, &mut lines);
    lines
}

fn block(random: &mut Random, language: &Language, text: &'static str, lines: &mut Vec<Line>) {
    for template in text.lines() {
        let indent = template.strip_suffix('@');
        let indent = indent.filter(|indent| indent.trim_start().is_empty());
        let text = match indent {
            Some(indent) => statement(random, language, indent),
            None => filled(random, "", template),
        };
        lines.push(Line { text, indent });
    }
}

fn statement(random: &mut Random, language: &Language, indent: &str) -> String {
    let template = if random.below(SELDOM) == 0 {
        random.of(language.faults)
    } else if random.below(RARELY) == 0 {
        random.of(language.rare)
    } else {
        random.of(language.statements)
    };
    filled(random, indent, template)
}

fn filled(random: &mut Random, indent: &str, template: &str) -> String {
    let mut out = String::with_capacity(indent.len() + template.len() + 24);
    out.push_str(indent);
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut capital = |words: &[&str]| {
            let word = random.of(words);
            let (first, others) = word.split_at(1);
            out.push_str(&first.to_ascii_uppercase());
            out.push_str(others);
        };
        match rest.as_bytes().first() {
            // The shell's own.
            _ if rest.starts_with("name") => {
                out.push('$');
                continue;
            }
            Some(b'N') => capital(NOUNS),
            Some(b'V') => capital(VERBS),
            Some(b'n') => out.push_str(random.of(NOUNS)),
            Some(b'v') => out.push_str(random.of(VERBS)),
            Some(b'd') => {
                let _ = write!(out, "{}", random.below(1000));
            }
            _ => {
                out.push('$');
                continue;
            }
        }
        rest = &rest[1..];
    }
    out.push_str(rest);
    out.push('\n');
    out
}
