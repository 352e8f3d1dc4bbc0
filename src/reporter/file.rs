//! Reports in files (`--format F=PATH`).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::model::Review;
use crate::port::{BoxFuture, ReportError, Reporter};
use crate::render::{Format, RenderContext, printable_line, render};

/// Writes a review to a file: the whole of it or nothing.
pub struct FileReporter {
    format: Format,
    context: RenderContext,
    path: PathBuf,
}

impl FileReporter {
    /// Reports to `path`; its folder must exist.
    pub fn new(format: Format, context: RenderContext, path: PathBuf) -> Self {
        Self {
            format,
            context,
            path,
        }
    }
}

impl Reporter for FileReporter {
    fn report<'a>(&'a self, review: &'a Review) -> BoxFuture<'a, Result<(), ReportError>> {
        Box::pin(async move {
            let text = render(self.format, review, &self.context);
            write_whole(&self.path, text.as_bytes()).map_err(|error| ReportError {
                message: format!(
                    "{}: the {} report could not be written: {error}",
                    printable_line(&self.path.to_string_lossy()),
                    self.format
                ),
            })
        })
    }
}

/// Replaces a regular file in one step. A pipe or a device (`/dev/stdout`) is written to, never replaced.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through a symbolic link it is the file behind it that counts.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match target.metadata() {
        Ok(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(meta) if !meta.is_file() => {
            let mut device = File::options().write(true).open(&target)?;
            device.write_all(bytes)?;
            return device.flush();
        }
        _ => {}
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ecr-report-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any program would create it: the umask decides.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.flush()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{
        CoverageReceipt, Decision, InputInfo, InputKind, SandboxInfo, Timing, Usage,
    };
    use crate::render::TerminalOptions;

    /// A review of nothing.
    pub(in crate::reporter) fn empty_review() -> Review {
        Review {
            input: InputInfo {
                kind: InputKind::Patch,
                base: None,
                head: None,
                base_name: None,
                repo: None,
                pr: None,
            },
            sandbox: SandboxInfo {
                level: "not_needed".into(),
                missing: Vec::new(),
            },
            decision: Decision::Skipped,
            complete: true,
            summary: String::new(),
            findings: Vec::new(),
            dismissed: Vec::new(),
            dropped: Vec::new(),
            coverage: CoverageReceipt::default(),
            notes: Vec::new(),
            passes: Vec::new(),
            usage: Usage::NONE,
            timing: Timing::default(),
        }
    }

    fn reporter(path: PathBuf) -> FileReporter {
        let context = RenderContext::new(TerminalOptions::default());
        FileReporter::new(Format::Json, context, path)
    }

    #[tokio::test]
    async fn replaces_files_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        std::fs::write(&path, "old").unwrap();
        reporter(path.clone())
            .report(&empty_review())
            .await
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('{') && text.ends_with("}\n"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_stay_links_and_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.json");
        std::fs::write(&real, "old").unwrap();
        let link = dir.path().join("link.json");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        reporter(link.clone())
            .report(&empty_review())
            .await
            .unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(std::fs::read_to_string(&real).unwrap().starts_with('{'));
        let error = reporter(dir.path().to_owned())
            .report(&empty_review())
            .await;
        assert!(error.unwrap_err().message.contains("json report"));
        let missing = dir.path().join("no/such/folder.json");
        assert!(reporter(missing).report(&empty_review()).await.is_err());
    }
}
