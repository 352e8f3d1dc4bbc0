//! Repositories made by real git from generated source text, the same on every machine.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bumped when the generated text changes, so that cached repositories are made anew.
const VERSION: u32 = 2;

/// The branch before the change and the one with it.
pub(crate) const BASE: &str = "main";
/// See [`BASE`].
pub(crate) const HEAD: &str = "topic";

/// What a repository holds and what its change does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The folder in the cache.
    pub(crate) name: &'static str,
    /// Files before the change.
    pub(crate) files: usize,
    /// Source lines of a file, about.
    pub(crate) lines: usize,
    /// Files that are edited in place.
    pub(crate) edited: usize,
    /// Files that are renamed and edited.
    pub(crate) renamed: usize,
    /// Files that are new.
    pub(crate) added: usize,
    /// Files that go.
    pub(crate) deleted: usize,
    /// Places that are edited in a file.
    pub(crate) hunks: usize,
    /// Lines that are replaced at each of them.
    pub(crate) replaced: usize,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const NOUNS: &[&str] = &[
    "account", "batch", "buffer", "cache", "channel", "client", "config", "cursor", "entry",
    "event", "filter", "frame", "handler", "header", "index", "item", "job", "key", "layer",
    "limit", "manager", "message", "node", "offset", "order", "packet", "page", "parser", "path",
    "payload", "queue", "record", "request", "response", "route", "schema", "session", "state",
    "stream", "token", "user", "value", "window", "worker",
];
const VERBS: &[&str] = &[
    "add", "apply", "build", "check", "clear", "close", "collect", "copy", "count", "create",
    "decode", "drop", "encode", "fetch", "find", "format", "handle", "load", "merge", "open",
    "parse", "read", "render", "reset", "resolve", "run", "save", "send", "split", "update",
    "validate", "write",
];

/// A language: the end of its files' names and its kinds of lines. `$n` stands for a noun, `$v` for a verb, `$d` for a
/// number. The last few of each are what text and structural rules stop at to look twice.
struct Language {
    end: &'static str,
    lines: &'static [&'static str],
    /// One line in so many is one of these.
    rare: &'static [&'static str],
}

const RARELY: usize = 60;

const LANGUAGES: &[Language] = &[
    Language {
        end: "ts",
        lines: &[
            "export function $v$n($n: string, $n$d: number): boolean {",
            "  const $n = await this.$n.$v($n, { $n: $d, retry: true });",
            "  if ($n === undefined || $n.length > $d) {",
            "    return $v$n($n, $d);",
            "  // The $n has to $v the $n before the $n is closed.",
            "  const { $n, $n$d } = $v$n(options.$n);",
            "  for (const $n of this.$ns.values()) {",
            "    $ns.push($v$n($n));",
            "  }",
            "",
            "  throw new Error('cannot $v $n');",
        ],
        rare: &[
            "  const $n = await db.query(`SELECT * FROM $n WHERE id = ${$n.id}`);",
            "  const label = '$n' + $n.name + ' of ' + $n;",
            "  log.info(`$v ${$n} of ${$n.length}`);",
            "  const token = process.env.$n_TOKEN ?? '';",
        ],
    },
    Language {
        end: "py",
        lines: &[
            "def $v_$n($n, $n_$d=None):",
            "    \"\"\"$v the $n of a $n, at most $d at a time.\"\"\"",
            "    $n = self.$n.$v($n, limit=$d)",
            "    if $n is None or len($n) > $d:",
            "        return [$v_$n(x) for x in $n]",
            "    with open($n_path, encoding=\"utf-8\") as $n:",
            "        $n_$d = json.load($n)[\"$n\"]",
            "    raise ValueError(f\"cannot $v {$n!r}\")",
            "",
            "    # A $n without $n is left as it is.",
        ],
        rare: &[
            "    cursor.execute(\"SELECT $n FROM $n WHERE id = %s\", ($n,))",
            "    except (KeyError, ValueError) as error:",
            "    subprocess.run([\"$n\", \"--$v\", $n], check=True)",
            "    password = os.environ[\"$n_PASSWORD\"]",
        ],
    },
    Language {
        end: "go",
        lines: &[
            "func (s *$nServer) $v$n(ctx context.Context, $n string) (*$n, error) {",
            "\t$n, err := s.$n.$v(ctx, $n, $d)",
            "\tif err != nil {",
            "\t\treturn nil, fmt.Errorf(\"$v $n: %w\", err)",
            "\t}",
            "\tfor _, $n := range $ns {",
            "\t\t$ns = append($ns, $v$n($n, $d))",
            "\t// $v$n waits until the $n is done.",
            "",
            "\tdefer s.$n.Close()",
        ],
        rare: &[
            "\trows, err := db.QueryContext(ctx, \"SELECT $n FROM $n WHERE id = ?\", $n)",
            "\tname := fmt.Sprintf(\"%s-%d\", $n, $d)",
            "\tcmd := exec.CommandContext(ctx, \"$n\", \"$v\")",
        ],
    },
    Language {
        end: "rs",
        lines: &[
            "    pub fn $v_$n(&self, $n: &str, limit: usize) -> Result<$n, Error> {",
            "        let $n = self.$n.$v($n)?;",
            "        if $n.len() > $d || $n.is_empty() {",
            "            return Err(Error::$n { at: $d });",
            "        let $n: Vec<_> = $ns.iter().filter(|x| x.$n > $d).collect();",
            "        match self.$v_$n(&$n) {",
            "            Some($n) => $n.$v(),",
            "            None => continue,",
            "    /// The $n that was asked for, unless it was $v before.",
            "        }",
            "",
        ],
        rare: &[
            "        let name = format!(\"$n-{}\", $n.id);",
            "        let row = sqlx::query(\"SELECT $n FROM $n WHERE id = $1\").bind($n);",
            "        let secret = std::env::var(\"$n_SECRET\")?;",
        ],
    },
    Language {
        end: "java",
        lines: &[
            "    public List<String> $v$n(final String $n, int $n$d) throws IOException {",
            "        final var $n = this.$n.$v($n, $d);",
            "        if ($n == null || $n.size() > $d) {",
            "            return Collections.emptyList();",
            "        for (var $n : $ns) {",
            "            $ns.add($v$n($n));",
            "        }",
            "    /** Gives the $n after the $n was $v. */",
            "        throw new IllegalStateException(\"no $n\");",
            "",
        ],
        rare: &[
            "        String $n = \"$n \" + $n.getName();",
            "        PreparedStatement s = c.prepareStatement(\"SELECT $n FROM $n WHERE id = ?\");",
        ],
    },
    Language {
        end: "md",
        lines: &[
            "The $n is read once and kept while the $n is open; $v it again to see a newer $n.",
            "- `$v-$n`: how many of the $ns are kept (default $d)",
            "",
            "See [the $n](../$n/$v.md#$n) for what a $n may hold.",
        ],
        rare: &["    curl -fsSL https://$n.example.com/$v.sh -o $v.sh"],
    },
    Language {
        end: "yaml",
        lines: &[
            "  $n: $d",
            "  - name: $v the $n",
            "    $n: \"$v-$n-$d\"",
            "$n:",
            "    enabled: true # for the $n only",
        ],
        rare: &["    password: ${$n_PASSWORD}", "    image: $n/$v:1.$d"],
    },
    Language {
        end: "sh",
        lines: &[
            "$v_$n() {",
            "  local $n=\"$1\"",
            "  if [ ! -f \"$$n/$v.conf\" ]; then",
            "    echo \"no $n: $$n\" >&2",
            "  fi",
            "  $v --$n=\"$$n\" \"$@\" || return $d",
            "",
            "# $v every $n of the $n",
        ],
        rare: &["  curl -fsS \"https://$n.example.com/$v\" -o \"$$n\""],
    },
];

fn line(random: &mut Random, language: &Language, out: &mut String) {
    let template = if random.below(RARELY) == 0 {
        random.of(language.rare)
    } else {
        random.of(language.lines)
    };
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.as_bytes().first() {
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
}

/// A file: its place and its lines.
struct Source {
    path: String,
    language: &'static Language,
    lines: Vec<String>,
}

fn source(random: &mut Random, number: usize, lines: usize) -> Source {
    let language = &LANGUAGES[random.below(LANGUAGES.len())];
    // About 40 files a folder, folders three deep.
    let folder = number / 40;
    let path = format!(
        "{}/{}{}/{}{}.{}",
        NOUNS[folder % 7],
        VERBS[folder % VERBS.len()],
        folder / 7,
        NOUNS[number % NOUNS.len()],
        number,
        language.end
    );
    let count = lines / 2 + random.below(lines);
    let lines = (0..count.max(1)).map(|_| {
        let mut text = String::new();
        line(random, language, &mut text);
        text
    });
    Source {
        path,
        language,
        lines: lines.collect(),
    }
}

/// Replaces `shape.replaced` lines at `shape.hunks` places that lie evenly apart.
fn edit(random: &mut Random, file: &mut Source, shape: &Shape) {
    let step = (file.lines.len() / shape.hunks.max(1)).max(1);
    for hunk in 0..shape.hunks {
        let from = hunk * step + step / 2;
        for at in from..from + shape.replaced {
            if let Some(old) = file.lines.get_mut(at) {
                old.clear();
                line(random, file.language, old);
            }
        }
    }
}

/// Writes one side of the repository for `git fast-import`.
struct Import<W> {
    out: W,
}

impl<W: Write> Import<W> {
    fn commit(&mut self, branch: &str, from: Option<&str>) -> io::Result<()> {
        writeln!(self.out, "commit refs/heads/{branch}")?;
        writeln!(
            self.out,
            "committer Bench <bench@example.com> 1700000000 +0000"
        )?;
        writeln!(self.out, "data 6\nbench")?;
        match from {
            Some(from) => writeln!(self.out, "from refs/heads/{from}"),
            None => Ok(()),
        }
    }

    fn file(&mut self, file: &Source) -> io::Result<()> {
        let size: usize = file.lines.iter().map(String::len).sum();
        writeln!(self.out, "M 100644 inline {}\ndata {size}", file.path)?;
        for line in &file.lines {
            self.out.write_all(line.as_bytes())?;
        }
        self.out.write_all(b"\n")
    }

    fn delete(&mut self, path: &str) -> io::Result<()> {
        writeln!(self.out, "D {path}")
    }
}

fn import(shape: &Shape, out: impl Write) -> io::Result<()> {
    let mut random = Random(shape.files as u64);
    let mut import = Import { out };
    let mut files: Vec<Source> = Vec::with_capacity(shape.files);
    import.commit(BASE, None)?;
    for number in 0..shape.files {
        let file = source(&mut random, number, shape.lines);
        import.file(&file)?;
        files.push(file);
    }
    import.commit(HEAD, Some(BASE))?;
    // Changed files lie all over the tree.
    let touched = shape.edited + shape.renamed + shape.deleted;
    let at = |n: usize| n * shape.files / touched.max(1);
    for n in 0..touched {
        let file = &mut files[at(n)];
        let kind = (n * 7919) % touched.max(1);
        if kind < shape.deleted {
            import.delete(&file.path)?;
        } else {
            if kind < shape.deleted + shape.renamed {
                import.delete(&file.path)?;
                file.path = format!("moved/{}", file.path);
            }
            edit(&mut random, file, shape);
            import.file(file)?;
        }
    }
    for number in 0..shape.added {
        let file = source(&mut random, shape.files + number, shape.lines);
        import.file(&file)?;
    }
    import.out.flush()
}

fn git(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn succeed(mut command: Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {status}")))
}

/// The repository of `shape`: from the cache, or made now. The branch under review is checked out.
pub(crate) fn repository(cache: &Path, shape: &Shape) -> io::Result<PathBuf> {
    let folder = cache.join(format!("{}-v{VERSION}", shape.name));
    let done = folder.join(".git/bench-complete");
    if done.exists() {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    succeed(git(&folder, &["init", "--quiet", "--initial-branch=main"]))?;
    let mut fast = git(&folder, &["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = fast.stdin.take() {
        import(shape, io::BufWriter::new(stdin))?;
    }
    if !fast.wait()?.success() {
        return Err(io::Error::other("git fast-import failed"));
    }
    succeed(git(&folder, &["repack", "-a", "-d", "-q"]))?;
    succeed(git(&folder, &["checkout", "--quiet", "--force", HEAD]))?;
    fs::write(done, "")?;
    Ok(folder)
}
