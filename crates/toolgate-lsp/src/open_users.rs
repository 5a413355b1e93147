//! Servers that know no files but those that are open, because nothing lists the project's files for them. Before such a server is
//! asked about a symbol, the files that have its name are opened.

use tokio::time::Instant;
use toolgate_contract::{CodeQuestion, ServerHost, ToolError, WorkspacePath, counted};

use crate::connection::{Connection, ConnectionState};
use crate::documents::Fault;
use crate::languages::{LanguageServers, SyncedServer};
use crate::symbol_question::SymbolQuestion;
use crate::target::{last_part, name_at};

/// Files that are opened for one question. A server keeps what it made of each.
const MOST_USERS: usize = 40;

/// Where a file that lists a project's files may be beneath the project's directory.
const LIST_DIRECTORIES: [&str; 2] = ["", "build/"];

impl LanguageServers {
    /// The files with the name of the symbol that is asked about, where the server has to be given them.
    pub(crate) fn users(
        &self,
        asked: &SymbolQuestion<'_>,
        server: &SyncedServer,
    ) -> Result<Vec<WorkspacePath>, ToolError> {
        let connection = &server.connection;
        if matches!(asked.question, CodeQuestion::Hover { .. }) || connection.knows_project(asked.host) {
            return Ok(Vec::new());
        }
        let name = match &asked.target.symbol {
            Some(symbol) => last_part(symbol).to_owned(),
            None => name_at(&server.source, asked.target).unwrap_or_default(),
        };
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let is_wanted = |place: &WorkspacePath| connection.entry.takes(&place.path) && place != asked.place;
        self.files_with(&name, asked.host, &connection.root, &is_wanted)
    }
}

impl Connection {
    /// Whether the server knows the project's files by itself.
    fn knows_project(&self, host: &dyn ServerHost) -> bool {
        let Some(list) = &self.entry.file_list else { return true };
        let files = host.files();
        let places = LIST_DIRECTORIES.iter().map(|directory| self.root.join(&format!("{directory}{list}")));
        places.into_iter().any(|place| files.status(&place).is_ok_and(|found| found.is_some()))
    }

    /// Opens these files and waits until the server has read each. What a reader should know of it are the notes.
    pub(crate) async fn open_users(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        users: Vec<WorkspacePath>,
        until: Instant,
    ) -> Result<Vec<String>, Fault> {
        let mut opened = Vec::new();
        for place in users.iter().take(MOST_USERS) {
            // A file that can't be given, such as one that isn't UTF-8, is left to what the server makes of it.
            match self.sync_document(&mut state.documents, host, place).await {
                Ok((uri, _)) => opened.push(uri),
                Err(Fault::Own(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        for uri in opened {
            let Some(document) = state.documents.open.get(&uri) else { continue };
            self.await_published(&uri, document.version, document.sent_at, until).await?;
        }
        let left_out = users.len().saturating_sub(MOST_USERS);
        let list = self.entry.file_list.as_deref().unwrap_or_default();
        let note = || {
            let files = counted(left_out as u64, "further file");
            format!(
                "{files} with the name weren't looked at: without `{list}`, `{}` knows only open files.",
                self.entry.name
            )
        };
        Ok((left_out > 0).then(note).into_iter().collect())
    }
}
