//! `ecr stats`: what past runs found, cost and took.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::review::{Display, terminal_options};
use super::runs::RunStore;
use super::{AppError, Environment};
use crate::render::{self, Stats};
use crate::state::run_log;

/// What to show.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Only runs since then: a day (`2026-11-01`), or a time back from now (`30d`, `12h`).
    pub since: Option<String>,
    /// Where to write the page, if anywhere.
    pub html: Option<PathBuf>,
    /// The figures as JSON instead of text.
    pub json: bool,
    /// `--config-dir`: the set-up folder that keeps the runs.
    pub config_dir: Option<PathBuf>,
}

/// What is for stdout, and what is to be said beside it.
#[derive(Debug)]
pub struct Report {
    /// For stdout.
    pub product: String,
    /// For stderr, line by line.
    pub talk: Vec<String>,
}

/// Adds up the run log of the repository around the current folder.
pub async fn run(
    request: &Request,
    display: &Display,
    environment: &Environment,
) -> Result<Report, AppError> {
    let now = Timestamp::now();
    let since = request
        .since
        .as_deref()
        .map(|text| since(text, now))
        .transpose()?;
    let store = RunStore::here(request.config_dir.as_deref(), environment)
        .await?
        .ok_or_else(|| {
            AppError::new(
                "this repository has no place for past runs",
                "run it in the work tree, where `ecr review` ran",
            )
        })?;
    let path = store.log_path().display().to_string();
    let log = store
        .log()
        .map_err(|error| AppError::plain(format!("cannot read {path}: {error}")))?;
    let log = run_log::decode(&log);
    let stats = Stats::of(&log.runs, since);
    let mut talk = Vec::new();
    if log.damaged > 0 {
        talk.push(format!(
            "{path}: lines that cannot be read: {}",
            log.damaged
        ));
    }
    if log.newer > 0 {
        talk.push(format!(
            "{path}: lines of a newer ecr, not counted: {}",
            log.newer
        ));
    }
    if let Some(file) = &request.html {
        let file = environment.cwd().join(file);
        std::fs::write(&file, render::stats_html(&stats)).map_err(|error| {
            AppError::new(
                format!("cannot write {}: {error}", file.display()),
                "name a file in a folder that exists",
            )
        })?;
        talk.push(format!("wrote {}", file.display()));
    }
    let product = if request.json {
        serde_json::to_string_pretty(&stats)
            .map(|text| text + "\n")
            .map_err(|error| AppError::plain(error.to_string()))?
    } else if request.html.is_some() {
        String::new()
    } else {
        render::stats_terminal(&stats, &path, &terminal_options(display, true, None))
    };
    Ok(Report { product, talk })
}

/// `2026-11-01`, `30d`, `2w`, `12h`.
fn since(text: &str, now: Timestamp) -> Result<Timestamp, AppError> {
    if let Ok(day) = text.parse::<civil::Date>() {
        return day
            .to_zoned_datetime(TimeZone::UTC)
            .map(|zoned| zoned.timestamp())
            .map_err(|error| AppError::plain(format!("--since {text}: {error}")));
    }
    text.parse::<jiff::Span>()
        .ok()
        .filter(|span| !span.is_negative())
        .and_then(|span| now.to_zoned_datetime(TimeZone::UTC).checked_sub(span).ok())
        .map(|zoned| zoned.timestamp())
        .ok_or_else(|| {
            AppError::new(
                format!("--since {text}: neither a day nor a length of time"),
                "write a day (2026-11-01) or a time back from now (30d, 2w, 12h)",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_days_and_lengths_of_time() {
        let now: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        let at = |text: &str| since(text, now).unwrap().to_string();
        assert_eq!(at("2026-11-01"), "2026-11-01T00:00:00Z");
        assert_eq!(at("30d"), "2026-11-01T12:00:00Z");
        assert_eq!(at("2w"), "2026-11-17T12:00:00Z");
        assert_eq!(at("12h"), "2026-12-01T00:00:00Z");
        for bad in ["", "yesterday", "-3d", "3", "99999y", "2026-13-01"] {
            let error = since(bad, now).unwrap_err().to_string();
            assert!(error.contains("--since"), "{bad}: {error}");
        }
    }
}
