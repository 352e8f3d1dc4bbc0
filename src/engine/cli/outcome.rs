//! What came of a turn: the doors decide first, then the tool's own fields, text last.

use super::{Exit, Said, shown};
use crate::engine::api::{Ended, Why};
use crate::gateway::PassLedger;
use crate::port::EngineError;

/// How the conversation of a pass ended that ran to its end by itself.
pub(super) fn ended(
    title: &str,
    ledger: &PassLedger,
    said: Said,
    exit: Exit<'_>,
) -> Result<Ended, EngineError> {
    if ledger.finished {
        return Ok(Ended {
            text: String::new(),
            why: Why::Finished,
        });
    }
    if let Some(error) = &ledger.error {
        return Err(error.clone());
    }
    let cut = |text: String, why: String| Ended {
        text,
        why: Why::Cut(why),
    };
    if let Some(cap) = ledger.cap {
        let text = match said {
            Said::Text(text) | Said::Cut(text, _) => text,
            Said::Failed(_) | Said::Nothing => String::new(),
        };
        return Ok(cut(text, format!("{cap} used up")));
    }
    match said {
        Said::Failed(error) => Err(error),
        // What no model said is no answer: some take a task for a command of their own.
        Said::Text(text) if exit.code == Some(0) && ledger.requests > 0 => Ok(Ended {
            text,
            why: Why::Spoke,
        }),
        Said::Cut(text, by) => Ok(cut(text, format!("the model's answer was cut by {by}"))),
        _ => Err(no_answer(title, ledger, exit)),
    }
}

/// It ended, and nobody said why.
fn no_answer(title: &str, ledger: &PassLedger, exit: Exit<'_>) -> EngineError {
    let how = match exit.code {
        Some(code) => format!("exit code {code}"),
        None => "killed by a signal".to_owned(),
    };
    let words = match complaint(exit.stderr) {
        Some(words) => format!("{how}: {words}"),
        None => how,
    };
    // Without a single model call nothing was spent: it is the program that cannot run here.
    if ledger.requests == 0 && exit.code.is_some_and(|code| code != 0) {
        return EngineError::Unavailable(format!("{title} does not run here ({words})"));
    }
    EngineError::Protocol(format!("{title} ended without an answer ({words})"))
}

/// The last line of stderr that says something.
pub(super) fn complaint(stderr: &str) -> Option<String> {
    let line = stderr.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(shown(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Cap;

    fn exit(code: Option<i32>) -> Exit<'static> {
        Exit {
            code,
            stderr: "warming up\nerror: unknown option '--x'\n\n",
        }
    }

    fn called() -> PassLedger {
        PassLedger {
            requests: 2,
            ..PassLedger::default()
        }
    }

    fn why(ledger: &PassLedger, said: Said, code: Option<i32>) -> Result<Why, EngineError> {
        ended("Tool", ledger, said, exit(code)).map(|ended| ended.why)
    }

    #[test]
    fn the_doors_come_first() {
        let finished = PassLedger {
            finished: true,
            error: Some(EngineError::Overloaded),
            ..called()
        };
        assert_eq!(
            why(&finished, Said::Failed(EngineError::Cancelled), Some(1)),
            Ok(Why::Finished)
        );
        let failed = PassLedger {
            error: Some(EngineError::Overloaded),
            cap: Some(Cap::Turns),
            ..called()
        };
        let text = Said::Text("All is well.".to_owned());
        assert_eq!(why(&failed, text, Some(0)), Err(EngineError::Overloaded));
        let capped = PassLedger {
            cap: Some(Cap::Turns),
            ..called()
        };
        let said = Said::Failed(EngineError::Auth("403".into()));
        assert!(matches!(why(&capped, said, Some(1)), Ok(Why::Cut(_))));
    }

    #[test]
    fn then_the_tool_itself() {
        let said = Said::Failed(EngineError::ContextOverflow);
        assert_eq!(
            why(&called(), said, Some(1)),
            Err(EngineError::ContextOverflow)
        );
        let text = || Said::Text("x".to_owned());
        assert_eq!(why(&called(), text(), Some(0)), Ok(Why::Spoke));
        for (said, code) in [
            (text(), Some(1)),
            (text(), None),
            (Said::Nothing, Some(0)),
            (Said::Nothing, None),
        ] {
            let error = why(&called(), said, code).unwrap_err();
            assert!(matches!(error, EngineError::Protocol(_)), "{error}");
        }
    }

    #[test]
    fn who_never_called_a_model_cannot_run_here() {
        let error = why(&PassLedger::default(), Said::Nothing, Some(1)).unwrap_err();
        assert_eq!(
            error,
            EngineError::Unavailable(
                "Tool does not run here (exit code 1: error: unknown option '--x')".to_owned()
            )
        );
        for said in [Said::Nothing, Said::Text("Usage: …".to_owned())] {
            let error = why(&PassLedger::default(), said, Some(0)).unwrap_err();
            assert!(matches!(error, EngineError::Protocol(_)), "{error}");
        }
    }
}
