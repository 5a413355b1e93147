//! For the console: the processes that other programs run in its workspace, through their attach sockets.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use toolgate_console::{OtherProcesses, ProcessControl};
use toolgate_contract::{BoxFuture, ErrorCode, ToolError};
use toolgate_runtime::ProcessView;

use super::{AttachRequest, ask, connect_or_remove, sockets};

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The processes that other programs run in a workspace.
pub(crate) struct ProcessesElsewhere {
    /// Where the sockets are.
    pub(crate) directory: PathBuf,
    /// The workspace, as programs name it.
    pub(crate) workspace: String,
}

impl ProcessesElsewhere {
    /// What each other program answers.
    async fn ask_all(&self, request: &AttachRequest) -> Vec<anyhow::Result<Vec<ProcessView>>> {
        let own = format!("{}.sock", std::process::id());
        let others = sockets(&self.directory).unwrap_or_default();
        let mut answers = Vec::new();
        for socket in others.iter().filter(|socket| !socket.ends_with(&own)) {
            let Some(stream) = connect_or_remove(socket).await else { continue };
            answers.extend(timeout(PATIENCE, ask(stream, request)).await.ok());
        }
        answers
    }
}

impl OtherProcesses for ProcessesElsewhere {
    fn list(&self) -> BoxFuture<'_, Vec<ProcessView>> {
        Box::pin(async move {
            let answers = self.ask_all(&AttachRequest::ListOf { workspace: self.workspace.clone() }).await;
            answers.into_iter().flatten().flatten().collect()
        })
    }

    fn show<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<ProcessView>> {
        Box::pin(async move {
            let request = AttachRequest::Show { process: id.to_owned(), workspace: self.workspace.clone() };
            self.ask_all(&request).await.into_iter().flatten().flatten().next()
        })
    }

    fn act<'a>(&'a self, id: &'a str, action: ProcessControl, by: &'a str) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move {
            let (process, workspace) = (id.to_owned(), self.workspace.clone());
            let request = AttachRequest::Act { process, workspace, action, by: by.to_owned() };
            let answers = self.ask_all(&request).await;
            let refused = answers.iter().find_map(|answer| answer.as_ref().err());
            match answers.iter().flatten().any(|acted| !acted.is_empty()) {
                true => Ok(true),
                false if refused.is_none() => Ok(false),
                false => {
                    let why = refused.map(ToString::to_string).unwrap_or_default();
                    Err(ToolError::new(ErrorCode::IoError, format!("The program that runs the process says: {why}.")))
                }
            }
        })
    }
}
