//! What a run leaves: the plan, the kept run, the reports.

use std::collections::BTreeSet;
use std::io::Write;

use super::{Finished, OutputSpec, Prepared, Request, Setup};
use crate::app::runs::RunStore;
use crate::app::{AppError, Environment};
use crate::ledger::{PriceTable, estimated_tokens};
use crate::model::{PassKind, Review};
use crate::pipeline::{PlannedPass, TaskWriter};
use crate::port::Reporter;
use crate::render::{self, Format, RenderContext};
use crate::reporter::{FileReporter, TerminalReporter};
use crate::state::run_log::RunLine;
use crate::state::saved::{SavedRun, encode};

/// Prints what would be done.
pub(super) fn print_plan(
    prepared: &Prepared,
    request: &Request,
    context: &RenderContext,
    estimates: (&PriceTable, &TaskWriter),
    mut product: Box<dyn Write + Send>,
) -> Result<Finished, AppError> {
    let diff = &prepared.plan.diff;
    let (table, task) = estimates;
    // The first call of each: what tools read comes on top, and is not known before.
    let first_call = |pass: &PlannedPass| match pass.kind {
        PassKind::Checks => 0,
        _ => estimated_tokens((pass.agent.system.len() + task(pass, diff).len()) as u64),
    };
    let price = |pass: &PlannedPass| {
        let prices = table.of(pass.agent.model.as_ref()?)?;
        Some(prices.ceiling(first_call(pass), 0, false))
    };
    let view = render::PlanView {
        input: prepared.info.clone(),
        files: diff
            .files
            .iter()
            .zip(&prepared.plan.filtered)
            .map(|(file, filtered)| render::PlanFile {
                path: file.path.clone(),
                status: file.status,
                added: file.added,
                deleted: file.deleted,
                filtered: filtered.clone(),
            })
            .collect(),
        chunks: prepared
            .chunks
            .iter()
            .map(|files| render::PlanChunk {
                files: files.clone(),
                lines: files
                    .iter()
                    .map(|at| u64::from(diff.files[*at].added) + u64::from(diff.files[*at].deleted))
                    .sum(),
            })
            .collect(),
        passes: prepared
            .plan
            .passes
            .iter()
            .map(|pass| render::PlanPass {
                id: pass.id.clone(),
                kind: pass.kind,
                agent: pass.agent.id.clone(),
                engine: pass.agent.engine.clone(),
                model: pass.agent.model.clone(),
                files: pass.files.len(),
                tokens: first_call(pass),
                cost: price(pass),
            })
            .collect(),
        notes: prepared
            .notes
            .iter()
            .map(|note| note.text.clone())
            .collect(),
    };
    let mut formats = request.outputs.iter().map(|output| output.format);
    let text = match formats.next().unwrap_or(Format::Terminal) {
        Format::Terminal => render::plan_terminal(&view, &context.terminal),
        Format::Json => render::plan_json(&view),
        other => return Err(plan_format(other)),
    };
    match product
        .write_all(text.as_bytes())
        .and_then(|()| product.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(AppError::plain(format!("cannot write the plan: {error}")))
        }
        _ => Ok(Finished::Planned),
    }
}

/// Keeps the run for `ecr explain` and `ecr stats`. The error is one sentence.
pub(super) fn save(
    review: &Review,
    context: &RenderContext,
    setup: &Setup,
    environment: &Environment,
) -> Result<(), String> {
    let keep = usize::try_from(setup.loaded.config.runs_kept).unwrap_or(usize::MAX);
    let Some(root) = &setup.root else {
        return Ok(());
    };
    let failed =
        |error: &dyn std::fmt::Display| format!("this run was not kept for `ecr explain`: {error}");
    let Some(store) = RunStore::of(root, setup.folder.as_deref(), environment, keep) else {
        return Err(failed(&"there is no folder to keep it in"));
    };
    let now = jiff::Timestamp::now();
    let run = SavedRun::new(now, render::output(review, context));
    let text = encode(&run).map_err(|error| failed(&error))?;
    store.save(&text).map_err(|error| failed(&error))?;
    store
        .append(&RunLine::of(now, &run.output), now)
        .map_err(|error| format!("this run was not added to the log of `ecr stats`: {error}"))
}

/// Writes every report.
pub(super) async fn deliver(
    review: &Review,
    outputs: &[OutputSpec],
    context: &RenderContext,
    product: Box<dyn Write + Send>,
    environment: &Environment,
) -> Result<(), AppError> {
    let mut product = Some(product);
    let mut reporters: Vec<Box<dyn Reporter>> = Vec::new();
    for output in outputs {
        if let Some(path) = &output.path {
            let path = environment.cwd().join(path);
            reporters.push(Box::new(FileReporter::new(
                output.format,
                context.clone(),
                path,
            )));
        } else if let Some(product) = product.take() {
            reporters.push(Box::new(TerminalReporter::new(
                output.format,
                context.clone(),
                product,
            )));
        }
    }
    // With nothing for stdout asked for, a person still gets the report.
    if let Some(product) = product.take() {
        reporters.push(Box::new(TerminalReporter::new(
            Format::Terminal,
            context.clone(),
            product,
        )));
    }
    let mut failed = Vec::new();
    for reporter in reporters {
        if let Err(error) = reporter.report(review).await {
            failed.push(error.to_string());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(AppError::new(
        failed.join("; "),
        "check that the folder exists and can be written to",
    ))
}

fn plan_format(format: Format) -> AppError {
    AppError::new(
        format!("--plan cannot be written as {format}"),
        "use --format terminal or --format json",
    )
}

/// Checks the outputs before anything runs: one report at most can go to stdout, every file can be
/// written as far as one can tell, no file is written twice.
pub fn check_outputs(
    outputs: &[OutputSpec],
    plan_only: bool,
    environment: &Environment,
) -> Result<(), AppError> {
    let to_stdout = outputs
        .iter()
        .filter(|output| output.path.is_none())
        .count();
    if to_stdout > 1 {
        return Err(AppError::new(
            "several formats would go to standard output",
            "give all but one a file: --format json --format sarif=ecr.sarif",
        ));
    }
    for output in outputs.iter().filter(|_| plan_only) {
        if !matches!(output.format, Format::Terminal | Format::Json) {
            return Err(plan_format(output.format));
        }
        if output.path.is_some() {
            return Err(AppError::new(
                "--plan is printed, not written to a file",
                "redirect it: ecr review --plan --format json > plan.json",
            ));
        }
    }
    let mut files = BTreeSet::new();
    for path in outputs.iter().filter_map(|output| output.path.as_ref()) {
        let shown = render::printable_line(&path.to_string_lossy());
        let path = environment.cwd().join(path);
        let folder = path.parent().unwrap_or(&path);
        if path.is_dir() {
            return Err(AppError::new(
                format!("--format: {shown} is a folder"),
                "name a file",
            ));
        }
        if !folder.is_dir() {
            return Err(AppError::new(
                format!("--format: the folder of {shown} does not exist"),
                "make the folder first, or name another file",
            ));
        }
        if !files.insert(path) {
            return Err(AppError::new(
                format!("--format: two reports would be written to {shown}"),
                "give each report a file of its own",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn outputs_are_parsed_and_only_one_goes_to_stdout() {
        let parse = |text: &str| text.parse::<OutputSpec>();
        assert_eq!(
            parse("sarif=a=b.sarif").unwrap().path,
            Some(PathBuf::from("a=b.sarif"))
        );
        assert!(parse("sarif=").is_err() && parse("html").is_err());
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment::new(dir.path().to_owned(), []);
        let check = |texts: &[&str], plan_only| {
            let outputs: Vec<_> = texts.iter().map(|text| parse(text).unwrap()).collect();
            check_outputs(&outputs, plan_only, &environment)
        };
        assert!(check(&["json", "sarif=x"], false).is_ok());
        assert!(check(&["json"], true).is_ok());
        for (texts, plan_only) in [
            (&["json", "sarif"][..], false),
            (&["json=x", "sarif=x"], false),
            (&["json=no/such/folder"], false),
            (&["json=."], false),
            (&["sarif"], true),
            (&["json=x"], true),
        ] {
            assert!(check(texts, plan_only).is_err(), "{texts:?}");
        }
    }
}
