//! Rules for Python.

use tree_sitter::Node;

use super::interpolation::{glues_data, is_command_with_data, is_literal};
use super::nodes::{
    MAX_CALLEE, arguments, bare, children, contains, field, last_segment, mentions, one_of_two,
};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};
use super::sql;

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    match site.node.kind() {
        "call" => call(site, found),
        "assignment" => assignment(site, found),
        "assert_statement" => assert_tuple(site, found),
        "except_clause" => except_or(site, found),
        "raise_statement" => raise(site, found),
        "comparison_operator" => comparison(site, found),
        "default_parameter" | "typed_default_parameter" => mutated_default(site, found),
        _ => {}
    }
}

fn keyword<'a>(arguments: &[Node<'a>], site: &Site<'_, 'a>, name: &[u8]) -> Option<Node<'a>> {
    arguments.iter().copied().find(|argument| {
        argument.kind() == "keyword_argument"
            && field(*argument, "name").is_some_and(|key| site.text(key) == name)
    })
}

fn keyword_value<'a>(arguments: &[Node<'a>], site: &Site<'_, 'a>, name: &[u8]) -> Option<&'a [u8]> {
    let argument = keyword(arguments, site, name)?;
    field(argument, "value").map(|value| site.text(value))
}

fn call<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let name = site.field_text("function");
    if name.len() > MAX_CALLEE {
        return;
    }
    let last = last_segment(name);
    let arguments = arguments(site.node);
    breakpoint(site, name, found);
    if site.scan.in_tests {
        return;
    }
    tls_call(site, name, &arguments, found);
    if last == b"set_missing_host_key_policy"
        && site.scan.mentions("paramiko")
        && arguments.first().is_some_and(|policy| {
            let policy = site.text(*policy);
            contains(policy, "AutoAddPolicy") || contains(policy, "WarningPolicy")
        })
        && !site.is_opted_into(OPTED_OUT)
    {
        found.push((rules::SSH_HOST_KEY, site.node));
    }
    if last == b"run"
        && keyword_value(&arguments, site, b"debug") == Some(b"True")
        && keyword_value(&arguments, site, b"host").is_some_and(|host| contains(host, "0.0.0.0"))
    {
        found.push((rules::DEBUG_SERVER, site.node));
    }
    if last.starts_with(b"load") || last == b"unsafe_load" || last == b"decode" {
        deserialise(site, name, &arguments, found);
    }
    let Some(first) = arguments.first().map(|first| bare(*first)) else {
        return;
    };
    match name {
        b"eval" | b"exec"
            if is_foreign(site, first) || (name == b"eval" && glues_data(site, first)) =>
        {
            found.push((rules::CODE, first));
        }
        b"os.system"
        | b"os.popen"
        | b"subprocess.getoutput"
        | b"subprocess.getstatusoutput"
        | b"asyncio.create_subprocess_shell" => shell(site, first, found),
        b"subprocess.run"
        | b"subprocess.call"
        | b"subprocess.check_call"
        | b"subprocess.check_output"
        | b"subprocess.Popen"
        | b"Popen"
        | b"check_output"
        | b"check_call"
            if keyword_value(&arguments, site, b"shell") == Some(b"True") =>
        {
            shell(site, first, found);
        }
        _ => {}
    }
    if matches!(
        last,
        b"execute" | b"executescript" | b"raw" | b"read_sql" | b"read_sql_query"
    ) || name == b"text"
        || name == b"sqlalchemy.text"
    {
        // `execute(text(f"…"))` is reported at `text`.
        if name != last && sql::pastes_value(site, site.resolve(first))
            || name == b"text" && sql::pastes_value(site, first)
        {
            found.push((rules::SQL, first));
        }
    }
}

fn shell<'a>(site: &Site<'_, 'a>, command: Node<'a>, found: &mut Found<'a>) {
    if is_command_with_data(site, site.resolve(command), OWN_PATHS) {
        found.push((rules::SHELL, command));
    }
}

/// Where the program itself lives: not somebody else's data.
const OWN_PATHS: &[&str] = &["sys.executable", "__file__", "os.getcwd", "list2cmdline"];

/// Expressions that come from outside, by the names everybody uses for them.
const SOURCES: &[&str] = &[
    "request.",
    "sys.argv",
    "input(",
    "raw_input(",
    "os.environ",
    ".recv(",
    ".get_json(",
    "urlopen(",
    "requests.get(",
];

fn is_foreign<'a>(site: &Site<'_, 'a>, node: Node<'a>) -> bool {
    let value = site.resolve(node);
    !matches!(value.kind(), "string" | "concatenated_string" | "lambda")
        && mentions(site.text(value), SOURCES)
}

fn tls_call<'a>(site: &Site<'_, 'a>, name: &[u8], arguments: &[Node<'a>], found: &mut Found<'a>) {
    let off = |name: &[u8]| {
        keyword(arguments, site, name).filter(|argument| {
            field(*argument, "value").is_some_and(|value| site.text(value) == b"False")
        })
    };
    let last = last_segment(name);
    let is_http = matches!(
        last,
        b"get"
            | b"post"
            | b"put"
            | b"patch"
            | b"delete"
            | b"head"
            | b"options"
            | b"request"
            | b"stream"
            | b"send"
            | b"Client"
            | b"AsyncClient"
            | b"HTTPTransport"
            | b"AsyncHTTPTransport"
    );
    let hit = if is_http
        && (site.scan.mentions("requests") || site.scan.mentions("httpx"))
        && off(b"verify").is_some()
    {
        off(b"verify")
    } else if site.scan.mentions("aiohttp")
        && (is_http || matches!(last, b"TCPConnector" | b"ws_connect" | b"ClientSession"))
        && (off(b"ssl").is_some() || off(b"verify_ssl").is_some())
    {
        off(b"ssl").or_else(|| off(b"verify_ssl"))
    } else if name == b"ssl._create_unverified_context" {
        Some(site.node)
    } else if matches!(
        last,
        b"PoolManager" | b"HTTPSConnectionPool" | b"wrap_socket" | b"create_urllib3_context"
    ) {
        keyword(arguments, site, b"cert_reqs")
            .filter(|argument| is_cert_none(site, field(*argument, "value")))
    } else {
        None
    };
    if let Some(node) = hit
        && !site.is_opted_into(OPTED_OUT)
    {
        found.push((rules::TLS, node));
    }
}

fn is_cert_none(site: &Site<'_, '_>, value: Option<Node<'_>>) -> bool {
    value.is_some_and(|value| {
        matches!(
            site.text(value),
            b"ssl.CERT_NONE" | b"CERT_NONE" | b"'CERT_NONE'" | b"\"CERT_NONE\""
        )
    })
}

/// `context.verify_mode = ssl.CERT_NONE`, `session.verify = False`, the global `ssl._create_default_https_context`.
fn assignment<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let Some(left) = field(site.node, "left").filter(|left| left.kind() == "attribute") else {
        return;
    };
    let right = site.field_text("right");
    let left = site.text(left);
    let off = match last_segment(left) {
        // On `self` it is the starting value of a class that is configured later.
        b"verify_mode" => {
            !left.starts_with(b"self.v") && is_cert_none(site, field(site.node, "right"))
        }
        b"_create_default_https_context" => right == b"ssl._create_unverified_context",
        b"verify" => {
            right == b"False" && site.scan.mentions("requests") && contains(left, "session")
        }
        _ => false,
    };
    if off && !site.scan.in_tests && !site.is_opted_into(OPTED_OUT) {
        found.push((rules::TLS, site.node));
    }
}

fn deserialise<'a>(
    site: &Site<'_, 'a>,
    name: &[u8],
    arguments: &[Node<'a>],
    found: &mut Found<'a>,
) {
    let Some(first) = arguments.first().copied() else {
        return;
    };
    let unsafe_call = match name {
        b"yaml.unsafe_load" | b"yaml.unsafe_load_all" => !is_own_file(site, first),
        b"yaml.load" | b"yaml.load_all" => {
            is_unsafe_yaml(site, arguments) && !is_own_file(site, first)
        }
        b"pickle.loads" | b"cPickle.loads" | b"dill.loads" | b"cloudpickle.loads"
        | b"marshal.loads" | b"jsonpickle.decode" => is_received(site, first),
        _ => false,
    };
    if unsafe_call {
        found.push((rules::DESERIALISATION, site.node));
    }
}

/// The old loaders that build any object, or none named at all. `yaml` must be `PyYAML` and not an instance of another parser.
fn is_unsafe_yaml(site: &Site<'_, '_>, arguments: &[Node<'_>]) -> bool {
    if !site.scan.mentions("import yaml")
        || site.scan.mentions("ruamel")
        || site.scan.bindings().binds(b"yaml")
    {
        return false;
    }
    let loader = arguments
        .iter()
        .find(|argument| field(**argument, "name").is_some_and(|key| site.text(key) == b"Loader"))
        .and_then(|argument| field(*argument, "value"))
        .or_else(|| arguments.get(1).copied());
    match loader {
        Some(loader) => matches!(
            site.text(loader),
            b"yaml.Loader" | b"yaml.UnsafeLoader" | b"yaml.CLoader" | b"yaml.CUnsafeLoader"
        ),
        None => true,
    }
}

fn is_own_file(site: &Site<'_, '_>, argument: Node<'_>) -> bool {
    bare(argument).kind() == "string" && is_literal(site.scan.language, site.scan.source, argument)
}

/// Whether a value is what somebody sent.
fn is_received<'a>(site: &Site<'_, 'a>, node: Node<'a>) -> bool {
    let value = site.resolve(node);
    mentions(
        site.text(value),
        &[
            "request.",
            ".recv(",
            "cookies",
            "urlopen(",
            "requests.get(",
            "requests.post(",
            "self.rfile",
            "input(",
            "websocket",
        ],
    )
}

fn breakpoint<'a>(site: &Site<'_, 'a>, name: &[u8], found: &mut Found<'a>) {
    let stops = match name {
        b"breakpoint" => !site.scan.bindings().binds(b"breakpoint"),
        b"pdb.set_trace"
        | b"ipdb.set_trace"
        | b"pudb.set_trace"
        | b"rdb.set_trace"
        | b"pydevd.settrace"
        | b"pydevd_pycharm.settrace" => true,
        _ => false,
    };
    let statement = site
        .parent()
        .is_some_and(|parent| parent.kind() == "expression_statement");
    let is_debugger = mentions(site.scan.path.file_name(), &["pdb", "debug"]);
    if stops
        && !is_debugger
        && statement
        && !site.is_opted_into(&[
            "debug",
            "pdb",
            "trace",
            "interactive",
            "breakpoint",
            "env",
            "opt",
            "arg",
            "inspect",
            "test",
        ])
    {
        found.push((rules::DEBUGGER, site.node));
    }
}

fn assert_tuple<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if let [only] = children(site.node, 2).as_slice()
        && only.kind() == "tuple"
        && !children(*only, 1).is_empty()
    {
        found.push((rules::ASSERT_TUPLE, *only));
    }
}

fn except_or<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let Some(mut caught) = children(site.node, 1).first().copied() else {
        return;
    };
    if caught.kind() == "as_pattern" {
        match children(caught, 1).first() {
            Some(value) => caught = *value,
            None => return,
        }
    }
    let caught = bare(caught);
    // Names with capitals: `except handler or Exception:` picks a class at run time, on purpose.
    let is_class = |node: Option<Node<'_>>| {
        node.is_some_and(|node| {
            matches!(node.kind(), "identifier" | "attribute")
                && last_segment(site.text(node))
                    .first()
                    .is_some_and(u8::is_ascii_uppercase)
        })
    };
    if caught.kind() == "boolean_operator"
        && field(caught, "operator").is_some_and(|operator| site.text(operator) == b"or")
        && is_class(field(caught, "left"))
        && is_class(field(caught, "right"))
        && field(caught, "left").map(|left| site.text(left))
            != field(caught, "right").map(|right| site.text(right))
    {
        found.push((rules::EXCEPT_OR, caught));
    }
}

fn raise<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let Some(raised) = children(site.node, 1).first().copied() else {
        return;
    };
    let name = if raised.kind() == "call" {
        field(raised, "function").map_or(&b""[..], |callee| site.text(callee))
    } else {
        site.text(raised)
    };
    if name == b"NotImplemented" {
        found.push((rules::RAISE_NOT_IMPLEMENTED, site.node));
    }
}

fn comparison<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let operands = children(site.node, 4);
    let [left, right] = operands.as_slice() else {
        return;
    };
    let operator = site
        .scan
        .source
        .get(left.end_byte()..right.start_byte())
        .unwrap_or_default()
        .trim_ascii();
    let identity = operator == b"is" || (operator.starts_with(b"is") && operator.ends_with(b"not"));
    let is_text = |node: &Node<'_>| matches!(node.kind(), "string" | "concatenated_string");
    if identity && (is_text(left) || is_text(right)) {
        found.push((rules::LITERAL_IDENTITY, site.node));
    }
    let is_nan = |node: &Node<'_>| {
        matches!(
            site.text(*node),
            b"math.nan"
                | b"np.nan"
                | b"numpy.nan"
                | b"np.NaN"
                | b"float('nan')"
                | b"float(\"nan\")"
                | b"float('NaN')"
        )
    };
    if matches!(operator, b"==" | b"!=") && one_of_two([is_nan(left), is_nan(right)]) {
        found.push((rules::NAN_COMPARISON, site.node));
    }
}

/// Methods that put something into a list, a dict or a set; taking things out of an empty one leaves no trace.
const MUTATORS: &[&[u8]] = &[
    b"append",
    b"extend",
    b"insert",
    b"add",
    b"update",
    b"setdefault",
];

/// `def f(x, seen=[])` where the body changes `seen` and never gives the name another value.
fn mutated_default<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let mutable = matches!(
        site.field_text("value").trim_ascii(),
        b"[]" | b"{}" | b"list()" | b"dict()" | b"set()"
    );
    let function = site
        .ancestors
        .iter()
        .rev()
        .nth(1)
        .filter(|ancestor| ancestor.kind() == "function_definition");
    let (true, Some(function)) = (mutable, function) else {
        return;
    };
    let Some(body) = field(*function, "body") else {
        return;
    };
    let name = site.field_text("name");
    if name.starts_with(b"_") || mentions(name, &["cache", "memo"]) {
        return; // kept from call to call on purpose
    }
    let mut changed = false;
    let mut cursor = body.walk();
    // Bounded: a longer body is not looked through to its end.
    let mut left = 5_000;
    loop {
        let node = cursor.node();
        match node.kind() {
            "call" => {
                changed |= field(node, "function").is_some_and(|callee| {
                    callee.kind() == "attribute"
                        && field(callee, "object").is_some_and(|object| site.text(object) == name)
                        && field(callee, "attribute")
                            .is_some_and(|method| MUTATORS.contains(&site.text(method)))
                });
            }
            "assignment" | "augmented_assignment" | "named_expression" | "for_statement" => {
                let target = field(node, "left").or_else(|| field(node, "name"));
                if target.is_some_and(|target| site.text(target) == name) {
                    return;
                }
                changed |= target.is_some_and(|target| {
                    target.kind() == "subscript"
                        && field(target, "value").is_some_and(|value| site.text(value) == name)
                });
            }
            _ => {}
        }
        left -= 1;
        if left == 0 {
            break;
        }
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                if changed {
                    found.push((rules::MUTATED_DEFAULT, site.node));
                }
                return;
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}
