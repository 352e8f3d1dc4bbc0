//! The state, and what a request does to it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::faults::{Fault, FaultKind, hit};
use super::{git, spec};

/// Whose token it is.
#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) login: String,
    pub(crate) kind: &'static str,
    /// May write comments.
    pub(crate) write: bool,
}

impl Actor {
    /// The workflow's own token.
    pub(crate) fn actions(write: bool) -> Self {
        Self {
            login: "github-actions[bot]".to_owned(),
            kind: "Bot",
            write,
        }
    }

    /// A person.
    pub(crate) fn person(login: &str) -> Self {
        Self {
            login: login.to_owned(),
            kind: "User",
            write: true,
        }
    }

    fn json(&self) -> Value {
        json!({"login": self.login, "type": self.kind, "id": 1})
    }
}

/// A comment as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: u64,
    pub(crate) number: u64,
    pub(crate) author: Option<Actor>,
    pub(crate) body: String,
    pub(crate) edits: u32,
}

/// A pull request as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) open: bool,
    pub(crate) draft: bool,
    pub(crate) labels: Vec<String>,
    pub(crate) title: String,
    /// The description; none when its author wrote none.
    pub(crate) body: Option<String>,
    pub(crate) author: Actor,
    pub(crate) base: String,
    /// The repository of the head; none when it was deleted.
    pub(crate) head_repo: Option<String>,
}

/// What goes back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// How the answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Cut,
    Reset,
    Hang,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// As it stands in the request line, without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let found = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.headers.iter().find(found).map(|(_, v)| v.clone())
    }
}

impl Answer {
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            end: End::Whole,
        }
    }

    fn json(status: u16, body: &Value) -> Self {
        let mut answer = Self::new(status, body.to_string().into_bytes());
        answer.headers.push((
            "content-type".to_owned(),
            "application/json; charset=utf-8".to_owned(),
        ));
        answer
    }

    fn refusal(status: u16, message: &str) -> Self {
        Self::json(
            status,
            &json!({"message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string()}),
        )
    }

    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Everything the fake knows.
pub(crate) struct World {
    /// `owner/name`.
    pub(crate) repo: String,
    git_dir: PathBuf,
    pub(crate) tokens: BTreeMap<String, Actor>,
    pub(crate) pulls: BTreeMap<u64, Pull>,
    pub(crate) comments: Vec<Stored>,
    /// Login to permission.
    pub(crate) permissions: BTreeMap<String, &'static str>,
    pub(crate) faults: Vec<Fault>,
    /// Heads that the next reads of a pull request still show.
    pub(crate) heads: VecDeque<String>,
    /// `GET /repos/…`, in order; git's requests begin with `git `.
    pub(crate) log: Vec<String>,
    /// What requests broke of GitHub's description.
    pub(crate) violations: Vec<String>,
    /// Comments a page holds at most.
    pub(crate) page: usize,
    next: u64,
    /// The fake's address, for links.
    pub(crate) url: String,
}

/// Where REST lies, as on an enterprise server.
const REST: &str = "/api/v3";

impl World {
    /// A world around the repository whose `.git` is `git_dir`.
    pub(crate) fn new(git_dir: &Path) -> Self {
        for setting in [
            "uploadpack.allowAnySHA1InWant",
            "uploadpack.allowFilter",
            "http.uploadpack",
        ] {
            run_git(git_dir, &["config", setting, "true"]).unwrap();
        }
        Self {
            repo: "octo/demo".to_owned(),
            git_dir: git_dir.to_owned(),
            tokens: BTreeMap::new(),
            pulls: BTreeMap::new(),
            comments: Vec::new(),
            permissions: BTreeMap::new(),
            faults: Vec::new(),
            heads: VecDeque::new(),
            log: Vec::new(),
            violations: Vec::new(),
            page: 100,
            next: 4_294_967_296,
            url: "http://127.0.0.1:9".to_owned(),
        }
    }

    /// Opens pull request `number` with the head `commit`.
    pub(crate) fn open(&mut self, number: u64, base: &str, commit: &str) {
        let reference = format!("refs/pull/{number}/head");
        run_git(&self.git_dir, &["update-ref", &reference, commit]).unwrap();
        self.pulls.entry(number).or_insert_with(|| Pull {
            open: true,
            draft: false,
            labels: Vec::new(),
            title: "A change".to_owned(),
            body: None,
            author: Actor::person("author"),
            base: base.to_owned(),
            head_repo: Some("octo/demo".to_owned()),
        });
    }

    /// A comment by somebody; gives its id.
    pub(crate) fn comment(&mut self, number: u64, author: Actor, body: &str) -> u64 {
        self.next += 1;
        self.comments.push(Stored {
            id: self.next,
            number,
            author: Some(author),
            body: body.to_owned(),
            edits: 0,
        });
        self.next
    }

    /// Answers.
    pub(crate) fn answer(&mut self, asked: &Asked) -> Answer {
        let git_root = format!("/{}.git", self.repo);
        if let Some(rest) = asked.path.strip_prefix(&git_root) {
            return self.git(asked, rest);
        }
        self.log.push(format!(
            "{} {}",
            asked.method,
            asked.path.trim_start_matches(REST)
        ));
        let fault = hit(&mut self.faults, &asked.method, &asked.path);
        match fault {
            None => self.route(asked),
            Some(FaultKind::ApplyThenFail) => {
                self.route(asked);
                Answer::new(502, b"<html>Unicorn!</html>".to_vec())
            }
            Some(FaultKind::ApplyThenHang) => {
                let mut answer = self.route(asked);
                answer.end = End::Hang;
                answer
            }
            Some(FaultKind::Truncate) => {
                let mut answer = self.route(asked);
                let half = answer.body.len() / 2;
                answer.body.truncate(half);
                answer.end = End::Cut;
                answer
            }
            Some(FaultKind::Stale) => {
                let mut answer = self.route(asked);
                let mut list: Vec<Value> = serde_json::from_slice(&answer.body).unwrap();
                list.pop();
                answer.body = json!(list).to_string().into_bytes();
                answer
            }
            Some(FaultKind::Status(status, message)) => Answer::refusal(status, message).header(
                "x-accepted-github-permissions",
                "issues=write; pull_requests=write",
            ),
            Some(FaultKind::Html) => Answer::new(502, b"<html>Unicorn!</html>".to_vec()),
            Some(FaultKind::Primary(seconds)) => {
                let reset = super::memory::now() + seconds;
                Answer::refusal(403, "API rate limit exceeded for installation ID 1.")
                    .header("x-ratelimit-remaining", "0")
                    .header("x-ratelimit-reset", &reset.to_string())
            }
            Some(FaultKind::Secondary(after)) => {
                let answer = Answer::refusal(
                    403,
                    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
                );
                match after {
                    Some(seconds) => answer.header("retry-after", &seconds.to_string()),
                    None => answer,
                }
            }
            Some(FaultKind::Reset) => Answer {
                end: End::Reset,
                ..Answer::new(200, Vec::new())
            },
            Some(FaultKind::Hang) => Answer {
                end: End::Hang,
                ..Answer::new(200, Vec::new())
            },
        }
    }

    fn git(&mut self, asked: &Asked, rest: &str) -> Answer {
        self.log.push(format!("git {} {rest}", asked.method));
        let given = asked.header("authorization").unwrap_or_default();
        let known = self.tokens.keys().any(|token| {
            use base64::Engine as _;
            let pair = format!("x-access-token:{token}");
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            given.eq_ignore_ascii_case(&format!("basic {pair}"))
        });
        if !known {
            return Answer::new(401, b"private".to_vec())
                .header("www-authenticate", "Basic realm=\"GitHub\"");
        }
        if let Some(FaultKind::Status(status, _)) = hit(&mut self.faults, "GIT", rest) {
            return Answer::new(status, Vec::new());
        }
        let header = |name: &str| asked.header(name);
        git::serve(
            &self.git_dir,
            (&asked.method, rest, &asked.query),
            &header,
            &asked.body,
        )
    }

    fn route(&mut self, asked: &Asked) -> Answer {
        let given = asked.header("authorization").unwrap_or_default();
        let Some(actor) = given
            .strip_prefix("Bearer ")
            .and_then(|token| self.tokens.get(token))
            .cloned()
        else {
            return Answer::refusal(401, "Bad credentials");
        };
        if asked.header("user-agent").is_none() {
            return Answer::refusal(403, "Request forbidden by administrative rules.");
        }
        if asked.path == "/api/graphql" {
            return Answer::json(200, &json!({"data": {"viewer": {"login": actor.login}}}));
        }
        let Some(path) = asked.path.strip_prefix(REST) else {
            self.violations
                .push(format!("{}: outside of the API", asked.path));
            return Answer::refusal(404, "Not Found");
        };
        // Links to further pages name the repository by its id.
        let path = path.replacen("/repositories/7/", &format!("/repos/{}/", self.repo), 1);
        let path = path.as_str();
        for (name, expected) in [
            ("accept", "application/vnd.github+json"),
            ("x-github-api-version", "2022-11-28"),
        ] {
            if asked.header(name).as_deref() != Some(expected) {
                self.violations
                    .push(format!("{path}: {name} is not {expected}"));
            }
        }
        let query: Vec<(String, String)> =
            reqwest::Url::parse(&format!("http://x/?{}", asked.query))
                .unwrap()
                .query_pairs()
                .into_owned()
                .collect();
        self.violations
            .extend(spec::problems(&asked.method, path, &query, &asked.body));
        let root = format!("/repos/{}/", self.repo);
        let Some(rest) = path.strip_prefix(&root) else {
            return Answer::refusal(404, "Not Found");
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
        let refused = || {
            Answer::refusal(403, "Resource not accessible by integration").header(
                "x-accepted-github-permissions",
                "issues=write; pull_requests=write",
            )
        };
        match (asked.method.as_str(), &parts[..]) {
            ("GET", ["pulls", n]) => self.pull(n),
            ("GET", ["compare", basehead]) => self.compare(&percent(basehead)),
            ("GET", ["collaborators", login, "permission"]) => {
                match self.permissions.get(&percent(login)) {
                    Some(word) => Answer::json(
                        200,
                        &json!({"permission": word, "role_name": word, "user": null}),
                    ),
                    None => Answer::refusal(404, "Not Found"),
                }
            }
            ("GET", ["issues", n, "comments"]) => self.list(n, &query),
            ("POST" | "PATCH" | "DELETE", _) if !actor.write => refused(),
            ("POST", ["issues", n, "comments"]) => {
                let text = body["body"].as_str().unwrap_or_default();
                if text.chars().count() > 65_536 {
                    return Answer::refusal(422, "Validation Failed");
                }
                let id = self.comment(n.parse().unwrap(), actor, text);
                self.one(id, 201)
            }
            ("PATCH", ["issues", "comments", id]) => {
                let id: u64 = id.parse().unwrap();
                let Some(comment) = self.comments.iter_mut().find(|c| c.id == id) else {
                    return Answer::refusal(404, "Not Found");
                };
                body["body"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut comment.body);
                comment.edits += 1;
                self.one(id, 200)
            }
            ("DELETE", ["issues", "comments", id]) => {
                let id: u64 = id.parse().unwrap();
                let before = self.comments.len();
                self.comments.retain(|c| c.id != id);
                if self.comments.len() == before {
                    return Answer::refusal(404, "Not Found");
                }
                Answer::new(204, Vec::new())
            }
            _ => Answer::refusal(404, "Not Found"),
        }
    }

    fn pull(&mut self, n: &str) -> Answer {
        let shown = self.heads.pop_front();
        let found = n.parse().ok().and_then(|n: u64| self.pulls.get(&n));
        let Some(pull) = found else {
            return Answer::refusal(404, "Not Found");
        };
        let tip = |reference: &str| run_git(&self.git_dir, &["rev-parse", reference]).unwrap();
        let labels: Vec<_> = pull
            .labels
            .iter()
            .map(|l| json!({"name": l, "description": null}))
            .collect();
        Answer::json(
            200,
            &json!({
                "number": n.parse::<u64>().unwrap(), "state": if pull.open { "open" } else { "closed" }, "draft": pull.draft,
                "title": pull.title, "body": pull.body, "user": pull.author.json(), "labels": labels,
                "head": {"sha": shown.unwrap_or_else(|| tip(&format!("refs/pull/{n}/head"))), "ref": "feature", "repo": pull.head_repo.as_ref().map(|r| json!({"full_name": r}))},
                // GitHub keeps the tip as it was when it last looked: anything but the live one.
                "base": {"sha": "0123456789012345678901234567890123456789", "ref": pull.base, "repo": {"full_name": self.repo}},
            }),
        )
    }

    fn compare(&self, basehead: &str) -> Answer {
        let Some((base, head)) = basehead.split_once("...") else {
            return Answer::refusal(404, "Not Found");
        };
        let base = run_git(&self.git_dir, &["rev-parse", &format!("refs/heads/{base}")]);
        let merge_base = base
            .as_deref()
            .and_then(|base| run_git(&self.git_dir, &["merge-base", base, head]));
        match (base, merge_base) {
            (Some(base), Some(merge_base)) => Answer::json(
                200,
                &json!({"base_commit": {"sha": base}, "merge_base_commit": {"sha": merge_base}, "commits": []}),
            ),
            _ => Answer::refusal(404, "Not Found"),
        }
    }

    fn list(&self, n: &str, query: &[(String, String)]) -> Answer {
        let number = |name: &str, default: usize| {
            query
                .iter()
                .find(|(k, _)| k == name)
                .map_or(default, |(_, v)| v.parse().unwrap())
        };
        let size = number("per_page", 30).clamp(1, self.page);
        let page = number("page", 1);
        let n: u64 = n.parse().unwrap();
        let all: Vec<_> = self.comments.iter().filter(|c| c.number == n).collect();
        let shown: Vec<_> = all
            .iter()
            .skip((page - 1) * size)
            .take(size)
            .map(|c| self.json(c))
            .collect();
        let answer = Answer::json(200, &json!(shown));
        if page * size < all.len() {
            // By repository id, as GitHub does it.
            let next = format!(
                "<{}{REST}/repositories/7/issues/{n}/comments?per_page={size}&page={}>; rel=\"next\"",
                self.url,
                page + 1
            );
            return answer.header("link", &next);
        }
        answer
    }

    fn one(&self, id: u64, status: u16) -> Answer {
        let comment = self.comments.iter().find(|c| c.id == id).unwrap();
        Answer::json(status, &self.json(comment))
    }

    fn json(&self, comment: &Stored) -> Value {
        json!({
            "id": comment.id, "user": comment.author.as_ref().map(Actor::json), "body": comment.body,
            "html_url": format!("{}/{}/pull/{}#issuecomment-{}", self.url, self.repo, comment.number, comment.id),
            "created_at": "2026-12-01T00:00:00Z", "updated_at": "2026-12-01T00:00:00Z", "author_association": "NONE",
        })
    }
}

fn percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

/// git's answer without its line end; none when it fails.
fn run_git(git_dir: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(git_dir)
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}
