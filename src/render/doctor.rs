//! `ecr doctor` for a terminal.

use std::fmt::Write as _;

use super::layout::{Page, Paint, TerminalOptions, Verbosity};
use super::safe::printable_line;
use crate::state::doctor::{DoctorV1, Engine, Model, Problem, SetupFrom, Standing};

/// Columns of a row's name.
const NAME: usize = 10;

/// What was found, as text.
pub fn doctor(report: &DoctorV1, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    if options.verbosity > Verbosity::Quiet {
        facts(&mut page, report);
    }
    page.gap();
    for (paint, word, list) in [
        (Paint::Red, "problem", &report.problems),
        (Paint::Yellow, "warning", &report.warnings),
    ] {
        for problem in list {
            said(&mut page, (paint, word), problem);
        }
    }
    page.gap();
    let (paint, verdict) = if report.ok {
        (Paint::Green, "A review as configured can run here.")
    } else {
        (Paint::Red, "A review as configured cannot run here.")
    };
    let verdict = page.paint(paint, verdict);
    page.line(&verdict);
    page.finish()
}

fn said(page: &mut Page<'_>, (paint, word): (Paint, &str), problem: &Problem) {
    let lead = format!("{word} ({}): ", problem.area.as_str());
    for (at, line) in problem.message.lines().enumerate() {
        let lead = if at == 0 { lead.as_str() } else { "  " };
        page.wrapped((paint, lead), Paint::Plain, &printable_line(line));
    }
    if let Some(next) = &problem.next {
        page.wrapped(
            (Paint::Blue, "  next: "),
            Paint::Plain,
            &printable_line(next),
        );
    }
}

fn row(page: &mut Page<'_>, name: &str, text: &str) {
    let lead = format!("{name:NAME$}");
    page.wrapped((Paint::Strong, &lead), Paint::Plain, &printable_line(text));
}

fn facts(page: &mut Page<'_>, report: &DoctorV1) {
    row(page, "ecr", &report.ecr_version);
    let git = &report.git;
    let program = match (&git.path, &git.version) {
        (Some(path), Some(version)) => format!("{version} ({path})"),
        _ => "not found".to_owned(),
    };
    let repository = git.repository.as_deref().unwrap_or("none here");
    row(page, "git", &format!("{program}; repository: {repository}"));
    setup(page, report);
    sandbox(page, report);
    let doors = &report.doors;
    let works = |works: bool| if works { "works" } else { "does not work" };
    let strangers = if doors.strangers {
        "strangers stay out"
    } else {
        "strangers were not tried"
    };
    row(
        page,
        "doors",
        &format!(
            "model door {}, tool door {}, {strangers}",
            works(doors.model),
            works(doors.tools)
        ),
    );
    network(page, report);
    page.gap();
    for engine in &report.engines {
        row(
            page,
            "engine",
            &engine_words(engine, page.options.verbosity),
        );
    }
    for model in &report.models {
        row(page, "model", &model_words(model));
    }
}

fn setup(page: &mut Page<'_>, report: &DoctorV1) {
    let setup = &report.setup;
    let place = match (setup.from, &setup.folder) {
        (SetupFrom::Embedded, _) => "built in (no set-up folder)".to_owned(),
        (SetupFrom::Broken, _) => "cannot be read".to_owned(),
        (_, Some(folder)) => folder.clone(),
        (_, None) => "the repository's root".to_owned(),
    };
    let mut words = vec![place];
    if setup.from != SetupFrom::Broken {
        if let Some(config) = &setup.config {
            words.push(format!("configuration {config}"));
        } else {
            words.push("no configuration file".to_owned());
        }
        words.push(format!("reviewers {}", setup.agents.join(", ")));
        let checks = if setup.checks { "on" } else { "off" };
        words.push(format!("built-in checks {checks}"));
    }
    if setup.locked {
        words.push("credentials locked by ECR_EXPECTED_TOKEN_ENV".to_owned());
    }
    row(page, "set-up", &words.join("; "));
}

fn sandbox(page: &mut Page<'_>, report: &DoctorV1) {
    let sandbox = &report.sandbox;
    let mut words = format!(
        "level {} (required for own work: {}{})",
        sandbox.level,
        sandbox.required,
        if sandbox.needed {
            ""
        } else {
            "; no process is started here"
        }
    );
    for missing in &sandbox.missing {
        words.push_str("; missing: ");
        words.push_str(missing);
    }
    row(page, "sandbox", &words);
}

fn network(page: &mut Page<'_>, report: &DoctorV1) {
    let network = &report.network;
    let mut words: Vec<String> = network
        .proxies
        .iter()
        .map(|proxy| format!("{} through {}", proxy.variable, proxy.host))
        .collect();
    if words.is_empty() {
        words.push("no proxy".to_owned());
    } else if let Some(bypass) = &network.bypass {
        words.push(format!("not for {bypass}"));
    }
    if !network.tls {
        words.push("no CA certificates".to_owned());
    }
    row(page, "network", &words.join("; "));
}

fn engine_words(engine: &Engine, verbosity: Verbosity) -> String {
    let name = format!("{} ({})", engine.id, engine.title);
    let version = engine.version.as_deref().unwrap_or("of an unknown version");
    let tested = match &engine.tested {
        Some([first, last]) if first == last => last.clone(),
        Some([first, last]) => format!("{first} to {last}"),
        None => String::new(),
    };
    let mut words = match engine.standing {
        Standing::BuiltIn => format!("{name}: always there"),
        Standing::Tested => format!("{name}: {version}, tested"),
        Standing::Rehearsed => {
            format!("{name}: {version}, not tested ({tested} was); the self-test of the jar held")
        }
        Standing::Refused => format!("{name}: {version}, refused"),
        Standing::NotInstalled => format!("{name}: not installed"),
    };
    if let Some(path) = &engine.path {
        let _ = write!(words, ", {path}");
    }
    if engine.standing == Standing::Refused
        && let Some(problem) = &engine.problem
    {
        let _ = write!(words, ": {problem}");
    }
    if let (true, Some(sha256)) = (verbosity == Verbosity::Verbose, &engine.sha256) {
        let _ = write!(words, ", SHA-256 {sha256}");
    }
    if !engine.needed && engine.standing != Standing::BuiltIn {
        words.push_str(" (not in use here)");
    }
    words
}

fn model_words(model: &Model) -> String {
    let credential = &model.credential;
    let key = match (&credential.variable, credential.mode.as_str()) {
        (_, "none") => "no credential".to_owned(),
        (Some(name), mode) if credential.present => format!("{mode} from {name}"),
        (Some(name), mode) => format!("{mode} from {name}, which is not set"),
        (None, mode) => format!("{mode} from nowhere"),
    };
    let address = model.address.as_deref().unwrap_or("an unknown address");
    format!(
        "{} by {} at {address}; {key}; for {}",
        model.id,
        model.engine,
        model.agents.join(", ")
    )
}
