//! Which changes are worth a parse: words in the added lines, and words that the file must hold besides.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::super::CheckedFile;
use super::language::Language;

/// Longer lines are machine-made (minified, generated, data): neither looked at nor reported.
pub(super) const MAX_LINE: usize = 2_000;

/// A parse is worth it when an added line holds one of `words` (and `also` agrees), and the whole file one of `needs`.
struct Gate {
    words: &'static [&'static str],
    /// A closer look at the line, where the words alone are too common.
    also: fn(&[u8]) -> bool,
    /// Empty: nothing more is needed.
    needs: &'static [&'static str],
}

const fn gate(words: &'static [&'static str]) -> Gate {
    Gate {
        words,
        also: |_| true,
        needs: &[],
    }
}

const fn needing(words: &'static [&'static str], needs: &'static [&'static str]) -> Gate {
    Gate {
        words,
        also: |_| true,
        needs,
    }
}

const JAVASCRIPT: &[Gate] = &[
    gate(&[
        "rejectUnauthorized",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "debugger",
        "= NaN",
        "NaN =",
        "NaN !",
        "=NaN",
        "= Number.NaN",
        "eval(",
        "new Function(",
        "runInThisContext(",
        "runInNewContext(",
        "runInContext(",
        "unserialize(",
        ".only(",
        ".only.each",
        "fit(",
        "fdescribe(",
        "fcontext(",
    ]),
    needing(
        &["exec(", "execSync(", "${", "' +", "\" +", "` +"],
        &["child_process", "shelljs"],
    ),
    needing(
        &["${", "' +", "\" +", "'+", "\"+"],
        &[
            ".query(",
            ".execute(",
            ".raw(",
            "RawUnsafe(",
            ".prepare(",
            ".run(",
            "db.exec(",
            "db.all(",
            "db.get(",
        ],
    ),
];

const PYTHON: &[Gate] = &[
    gate(&[
        "verify=False",
        "verify = False",
        "verify_ssl=False",
        "ssl=False",
        "_create_unverified_context",
        "CERT_NONE",
        "AutoAddPolicy",
        "WarningPolicy",
        "breakpoint(",
        "set_trace(",
        "settrace(",
        "os.system(",
        "os.popen(",
        "getoutput(",
        "getstatusoutput(",
        "create_subprocess_shell(",
        "shell=True",
        "yaml.load",
        "yaml.unsafe_load",
        "pickle.loads(",
        "Pickle.loads(",
        "dill.loads(",
        "marshal.loads(",
        "jsonpickle.decode(",
        " is \"",
        " is '",
        " is not \"",
        " is not '",
        "\" is ",
        "' is ",
        "math.nan",
        "np.nan",
        "numpy.nan",
        "np.NaN",
        "'nan')",
        "\"nan\")",
    ]),
    Gate {
        words: &["eval(", "exec("],
        also: |line| {
            !line.windows(6).any(|w| w == b".eval(") || line.windows(5).any(|w| w == b"exec(")
        },
        needs: &[],
    },
    Gate {
        words: &["raise NotImplemented"],
        also: raises_constant,
        needs: &[],
    },
    Gate {
        words: &["except"],
        also: |line| memchr::memmem::find(line, b" or ").is_some(),
        needs: &[],
    },
    Gate {
        words: &["assert (", "assert("],
        also: |line| line.contains(&b',') || line.trim_ascii_end().ends_with(b"("),
        needs: &[],
    },
    Gate {
        words: &[
            "=[]", "= []", "={}", "= {}", "=set()", "= set()", "=list()", "= list()", "=dict()",
            "= dict()",
        ],
        also: |line| {
            let end = line.trim_ascii_end();
            memchr::memmem::find(line, b"def ").is_some()
                || end.ends_with(b",")
                || end.ends_with(b"):")
                || end.ends_with(b")")
        },
        needs: &[],
    },
    needing(&["debug=True", "0.0.0.0"], &["debug=True"]),
    needing(
        &["f\"", "f'", "%", ".format(", "+ ", "{"],
        &[
            "shell=True",
            "os.system(",
            "os.popen(",
            "getoutput(",
            "create_subprocess_shell(",
        ],
    ),
    needing(
        &["f\"", "f'", "%", ".format(", "+ ", "{"],
        &[".execute(", ".executescript(", ".raw(", "read_sql"],
    ),
];

const GO: &[Gate] = &[
    gate(&[
        "InsecureSkipVerify",
        "InsecureIgnoreHostKey",
        "runtime.Breakpoint(",
        "= math.NaN()",
        "math.NaN() =",
        "math.NaN() !",
        "FIt(",
        "FDescribe(",
        "FContext(",
        "FWhen(",
        "FSpecify(",
        "FEntry(",
        "FDescribeTable(",
    ]),
    needing(
        &["Sprintf(", "+ ", "\"+", "exec.Command"],
        &["\"-c\"", "\"/C\"", "\"/c\"", "\"-lc\""],
    ),
    needing(
        &["Sprintf(", "\" +", "\"+", "` +", "`+", "+ \""],
        &[
            ".Query(",
            ".QueryRow(",
            ".Exec(",
            "QueryContext(",
            "ExecContext(",
            "QueryRowContext(",
            ".Raw(",
            ".Queryx(",
            ".MustExec(",
        ],
    ),
];

const RUST: &[Gate] = &[
    gate(&[
        "danger_accept_invalid_",
        "SslVerifyMode::NONE",
        "dbg!(",
        "f64::NAN",
        "f32::NAN",
    ]),
    needing(
        &["format!(", "arg("],
        &["\"-c\"", "\"/C\"", "\"/c\"", "\"-lc\""],
    ),
    needing(
        &["format!(", "'{", "= {"],
        &[
            "query(",
            "query_as",
            "query_scalar",
            "sql_query(",
            ".execute(",
            "batch_execute(",
            ".prepare(",
            ".query_row(",
        ],
    ),
];

const JAVA: &[Gate] = &[
    gate(&[
        "ALLOW_ALL_HOSTNAME_VERIFIER",
        "NoopHostnameVerifier",
        "AllowAllHostnameVerifier",
        "TrustAllStrategy",
        "InsecureTrustManagerFactory",
        "checkServerTrusted",
        "ostnameVerifier(",
        "SSLSession",
        "ObjectInputStream(",
        "StrictHostKeyChecking",
        "== \"",
        "!= \"",
        "\" ==",
        "\" !=",
        "Double.NaN",
        "Float.NaN",
    ]),
    needing(
        &["+ ", "\"+", "+\"", "exec("],
        &["getRuntime()", "untime.exec("],
    ),
    needing(
        &["\" +", "\"+", "+ \"", "String.format(", ".formatted("],
        &[
            "executeQuery(",
            "executeUpdate(",
            ".execute(",
            "prepareStatement(",
            "prepareCall(",
            "createQuery(",
            "createNativeQuery(",
            "createSQLQuery(",
            "queryForObject(",
            "queryForList(",
            "rawQuery(",
            "execSQL(",
            "addBatch(",
        ],
    ),
];

const BASH: &[Gate] = &[gate(&[
    "curl",
    "wget",
    "StrictHostKeyChecking",
    "eval",
    "sh -c",
    "sh -lc",
    "sh -ec",
])];

/// `raise NotImplemented` and not `…Error`.
fn raises_constant(line: &[u8]) -> bool {
    const WORD: &[u8] = b"raise NotImplemented";
    memchr::memmem::find(line, WORD).is_some_and(|at| {
        !line
            .get(at + WORD.len())
            .is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// The gates of one language. Those that need nothing of the rest of the file are looked up together, since hardly a line holds one
/// of their words.
struct Prefilter {
    /// Words of the gates without needs.
    rare: AhoCorasick,
    /// Each gate with its words.
    gates: Vec<(&'static Gate, AhoCorasick)>,
    /// The needs of the others, and which gate each belongs to.
    needs: AhoCorasick,
    needed_by: Vec<usize>,
}

impl Prefilter {
    fn new(gates: &'static [Gate]) -> Option<Self> {
        let needed_by = gates
            .iter()
            .enumerate()
            .flat_map(|(at, gate)| gate.needs.iter().map(move |_| at))
            .collect();
        let rare = gates.iter().filter(|gate| gate.needs.is_empty());
        let each = gates
            .iter()
            .map(|gate| Some((gate, AhoCorasick::new(gate.words).ok()?)));
        Some(Self {
            rare: AhoCorasick::new(rare.flat_map(|gate| gate.words)).ok()?,
            gates: each.collect::<Option<_>>()?,
            needs: AhoCorasick::new(gates.iter().flat_map(|gate| gate.needs)).ok()?,
            needed_by,
        })
    }

    /// Looks at the added lines first: most changes are settled without the rest of the file.
    fn calls_for_parse(&self, file: &CheckedFile<'_>) -> bool {
        let lines = || {
            let lines = file.added.iter().map(|(_, line)| *line);
            lines.filter(|line| line.len() <= MAX_LINE)
        };
        let without_needs = |line: &[u8]| {
            self.rare.is_match(line)
                && self
                    .gates
                    .iter()
                    .any(|gate| gate.0.needs.is_empty() && passes(line, gate))
        };
        if lines().any(without_needs) {
            return true;
        }
        let asks: Vec<bool> = self
            .gates
            .iter()
            .map(|gate| !gate.0.needs.is_empty() && lines().any(|line| passes(line, gate)))
            .collect();
        asks.contains(&true)
            && file.content.get().is_some_and(|content| {
                self.needs
                    .find_iter(content)
                    .any(|found| asks[self.needed_by[found.pattern().as_usize()]])
            })
    }
}

fn passes(line: &[u8], (gate, words): &(&Gate, AhoCorasick)) -> bool {
    words.is_match(line) && (gate.also)(line)
}

/// Whether the added lines of `file` can hold anything that a built-in rule of `language` looks for.
pub(super) fn calls_for_parse(language: Language, file: &CheckedFile<'_>) -> bool {
    static PREFILTERS: LazyLock<[Option<Prefilter>; 6]> =
        LazyLock::new(|| [JAVASCRIPT, PYTHON, GO, RUST, JAVA, BASH].map(Prefilter::new));
    let at = match language {
        Language::JavaScript | Language::TypeScript | Language::Tsx => 0,
        Language::Python => 1,
        Language::Go => 2,
        Language::Rust => 3,
        Language::Java => 4,
        Language::Bash => 5,
        Language::Yaml => return false,
    };
    PREFILTERS[at]
        .as_ref()
        .is_some_and(|prefilter| prefilter.calls_for_parse(file))
}
