//! `ecr eval`: arguments, printing, exit code.

use super::args::{EvalArgs, ImportArg};
use super::exit::{self, EXIT_OK};
use super::run::write_product;
use crate::app::eval::{self, Request};
use crate::app::review::Display;
use crate::app::tape::TapeChoice;
use crate::app::{AppError, Environment};

pub(super) async fn run(
    args: EvalArgs,
    display: Display,
    environment: &Environment,
) -> Result<u8, AppError> {
    if let Some(set) = args.import {
        let set = match set {
            ImportArg::AacrBench => eval::PublicSet::AacrBench,
            ImportArg::Martian => eval::PublicSet::Martian,
        };
        write_product(&eval::import(&args.dataset, set, &args.from, environment)?)?;
        return Ok(EXIT_OK);
    }
    let request = Request {
        dataset: args.dataset,
        only: args.only,
        repos: args.repos,
        out: args.out,
        resume: args.resume,
        tape: match (args.record, args.replay) {
            (Some(folder), _) => TapeChoice::Record(folder),
            (None, Some(folder)) => TapeChoice::Replay(folder),
            (None, None) => TapeChoice::Live,
        },
        agents: args.agents,
        model: args.model,
        config_dir: args.config_dir,
        max_cost: args.max_cost,
        settings: eval::Settings {
            tolerance: args.tolerance,
            similarity: args.similarity,
        },
        seed: args.seed,
        display,
    };
    let finished = eval::run(request, environment, Box::new(std::io::stderr())).await?;
    let report = &finished.report;
    write_product(&eval::render(report, args.json))?;
    Ok(match finished.interrupt {
        Some(interrupt) => exit::of_interrupt(interrupt),
        None => exit::of_evaluation(report.cases, report.scored, report.complete),
    })
}
