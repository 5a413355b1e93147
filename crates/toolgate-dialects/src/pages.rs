//! Results that are longer than a page of the native tool. Page after page is read until the entries that the model asked for are there, or
//! as many of them as one result holds.

use serde_json::Value;
use toolgate_contract::Reply;

use crate::dialect::{Answered, EnterFault, EnterTool, NativeCall, Returned};

/// Native pages that one call reads at most.
const MOST_PAGES: usize = 20;
/// Bytes of the entries that one result shows, as JSON: as many as a native page has.
const MOST_BYTES: usize = 40 * 1024;
/// With so many bytes to show, another page isn't worth its call.
const ENOUGH_BYTES: usize = MOST_BYTES / 2;

/// Which entries of a long result a model asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryRange {
    /// How many are skipped.
    pub(crate) skip: usize,
    /// How many are shown at most.
    pub(crate) count: usize,
}

impl EntryRange {
    /// The range of these numbers, of which none is below zero.
    pub(crate) fn new(skip: i64, count: i64) -> Self {
        let number = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX);
        Self { skip: number(skip), count: number(count) }
    }

    /// Whether these entries fill a result. `size` is that of an entry, in bytes.
    pub(crate) fn is_full<T>(self, entries: &[T], size: impl Fn(&T) -> usize) -> bool {
        let shown = self.rest(entries);
        shown.len() >= self.count || shown.iter().map(size).sum::<usize>() >= ENOUGH_BYTES
    }

    /// The entries that are shown, and whether some behind them aren't.
    pub(crate) fn of<T>(self, entries: &[T], size: impl Fn(&T) -> usize) -> (&[T], bool) {
        let rest = self.rest(entries);
        let (mut bytes, mut shown) = (0, 0);
        for entry in rest.iter().take(self.count) {
            bytes += size(entry);
            // A first entry is shown however long it is.
            if bytes > MOST_BYTES && shown > 0 {
                break;
            }
            shown += 1;
        }
        (&rest[..shown], shown < rest.len())
    }

    fn rest<T>(self, entries: &[T]) -> &[T] {
        &entries[self.skip.min(entries.len())..]
    }
}

/// The size of an entry of a native list.
pub(crate) fn json_size(entry: &&Value) -> usize {
    entry.to_string().len()
}

/// The call of the next page, unless the pages so far fill a result. `first` makes the call of the first page, and `is_full` looks at
/// the entries of all pages.
pub(crate) fn next_page(
    answered: &Answered<'_>,
    list: &str,
    first: EnterTool,
    is_full: &dyn Fn(&[&Value]) -> bool,
) -> Result<Option<NativeCall>, EnterFault> {
    let cursor =
        answered.reply.truncated.as_ref().filter(|_| answered.reply.ok).and_then(|cut| cut.next_cursor.as_deref());
    let Some(cursor) = cursor.filter(|_| answered.earlier.len() + 1 < MOST_PAGES) else { return Ok(None) };
    if is_full(&entries(answered.earlier, answered.reply, list)) {
        return Ok(None);
    }
    let mut next = first(answered.args, answered.memory)?;
    next.args["cursor"] = cursor.into();
    Ok(Some(next))
}

/// The entries of all pages that were read.
pub(crate) fn all_entries<'a>(returned: &Returned<'a>, list: &str) -> Vec<&'a Value> {
    entries(returned.earlier, returned.reply, list)
}

fn entries<'a>(earlier: &'a [Reply], last: &'a Reply, list: &str) -> Vec<&'a Value> {
    let pages = earlier.iter().chain([last]).filter_map(|reply| reply.payload.as_ref()?.get(list)?.as_array());
    pages.flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::{ToolError, Truncated};

    use super::*;
    use crate::memory::DialectMemory;
    use crate::parameter::Arguments;

    /// A page of so many entries of about 100 bytes.
    fn page(entries: usize, next: Option<&str>) -> Reply {
        Reply {
            ok: true,
            error: None,
            payload: Some(json!({ "paths": vec!["x".repeat(98); entries] })),
            truncated: next.map(|next| Truncated { next_cursor: Some(next.into()), ..Truncated::default() }),
            ..Reply::refused("call_1".into(), ToolError::invalid_args(""))
        }
    }

    fn first(_: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
        Ok(NativeCall::new("find", json!({ "limit": 5 })))
    }

    /// The cursor of the page that is read after these.
    fn read_on(range: EntryRange, pages: &[Reply]) -> Option<String> {
        let (last, earlier) = pages.split_last().unwrap();
        let (args, memory) = (Arguments::default(), DialectMemory::default());
        let answered = Answered { args: &args, earlier, reply: last, memory: &memory };
        let next = next_page(&answered, "paths", first, &|entries| range.is_full(entries, json_size)).unwrap()?;
        assert_eq!(next.args["limit"], 5, "the arguments are those of the first page");
        next.args["cursor"].as_str().map(str::to_owned)
    }

    #[test]
    fn pages_are_read_until_what_was_asked_for_is_there() {
        let two = [page(100, Some("a")), page(100, Some("b"))];
        for (skip, count, next) in [(0, 200, None), (0, 201, Some("b")), (150, 50, None), (150, 51, Some("b"))] {
            assert_eq!(read_on(EntryRange::new(skip, count), &two).as_deref(), next, "{skip} {count}");
        }
        assert_eq!(read_on(EntryRange::new(500, 1), &[page(100, None)]), None, "there are no more");
        assert_eq!(read_on(EntryRange::new(0, i64::MAX), &[page(300, Some("a"))]), None, "one result holds no more");
        let many: Vec<Reply> = (0..MOST_PAGES).map(|_| page(1, Some("a"))).collect();
        assert_eq!(read_on(EntryRange::new(1000, 1), &many), None, "it ends some time");
    }

    #[test]
    fn a_result_shows_what_was_asked_for_as_far_as_it_fits() {
        let reply = page(1000, None);
        let all = entries(&[], &reply, "paths");
        let shown = |skip, count| {
            let (shown, is_cut) = EntryRange::new(skip, count).of(&all, json_size);
            (shown.len(), is_cut)
        };
        assert_eq!([shown(0, 10), shown(995, 10), shown(2000, 10)], [(10, true), (5, false), (0, false)]);
        assert_eq!(shown(0, i64::MAX), (MOST_BYTES / 100, true));
        let long = json!("x".repeat(MOST_BYTES));
        assert_eq!(EntryRange::new(0, 9).of(&[&long, &long], json_size).0.len(), 1);
    }
}
