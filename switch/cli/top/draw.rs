//! The screen: head, ports, queues as bars with their zones, flows, keys.

use npcc_api::model::{Flow, NpccQueue, Port};
use npcc_pipeline::num::real;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::state::{Line, State};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const TITLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Draws everything.
pub(super) fn screen(frame: &mut Frame<'_>, state: &mut State) {
    let (ports, queues) = (state.now.snapshot.ports.len(), state.queues().len());
    let part = frame.area().height.saturating_sub(3) / 3;
    let rows = |count: usize| u16::try_from(count + 1).unwrap_or(u16::MAX).min(part);
    let areas = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(rows(ports)),
        Constraint::Length(rows(queues.max(1))),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas::<5>(frame.area());
    let [head, of_ports, of_queues, of_flows, foot] = areas;
    draw_head(frame, head, state);
    draw_ports(frame, of_ports, state);
    draw_queues(frame, of_queues, state);
    draw_flows(frame, of_flows, state);
    draw_foot(frame, foot, state);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let all = &state.now.snapshot;
    let taken = 100 * all.buffer.used / all.buffer.pool.max(1);
    let cnps = state.rate(|all| all.npcc.cnps_sent);
    let first = Text::from(vec![
        Span::styled("npcc-switch ", TITLE),
        Span::raw(format!("{}  up {:.0} s", all.version, all.seconds)),
    ]);
    let second = match &state.error {
        Some(why) => Text::styled(format!("no answer: {why}"), BAD),
        None => Text::from(vec![
            Span::styled(format!("CNPs {}/s", short(cnps)), BOLD),
            Span::raw(format!(
                "  sent {}  flows {}  buffer {taken} %  action {}",
                all.npcc.cnps_sent, all.npcc.flows, all.npcc.action
            )),
            Span::styled(if state.held { "  HELD" } else { "" }, BAD),
        ]),
    };
    frame.render_widget(Paragraph::new(vec![first, second]), area);
}

fn draw_ports(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let rows = state.now.snapshot.ports.iter().enumerate();
    let rows = rows.map(|(at, port)| port_row(state, at, port));
    let header = Row::new([
        "PORT", "OPER", "IN", "OUT", "DROPS/S", "LOST", "PAUSED", "PAUSING",
    ])
    .style(TITLE);
    let widths = [12, 6, 10, 10, 9, 8, 8, 8].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

fn port_row(state: &State, at: usize, port: &Port) -> Row<'static> {
    let rate = |of: fn(&Port) -> u64| state.rate(|all| all.ports.get(at).map_or(0, of));
    let list = |mask: u64| {
        let set = (0..8).filter(|bit| mask >> bit & 1 != 0);
        set.map(|bit| bit.to_string()).collect::<Vec<_>>().join(",")
    };
    let link = if port.up {
        Cell::from("up")
    } else {
        Cell::from(Span::styled("down", BAD))
    };
    let lost = port.lossless_lost;
    Row::new([
        Cell::from(port.name.clone()),
        link,
        Cell::from(format!("{}b/s", short(8.0 * rate(|port| port.rx.bytes)))),
        Cell::from(format!("{}b/s", short(8.0 * rate(|port| port.tx.bytes)))),
        Cell::from(short(rate(|port| port.drops.iter().sum()))),
        Cell::from(Span::styled(
            lost.to_string(),
            if lost > 0 { BAD } else { DIM },
        )),
        Cell::from(list(port.flow.paused)),
        Cell::from(list(port.flow.asserted)),
    ])
}

fn draw_queues(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let queues = state.queues();
    let width = usize::from(area.width).saturating_sub(60).clamp(16, 100);
    let head = format!(
        "{:<15}{:<width$} {:>9} {:<8}{:>9} {:>9}",
        "QUEUE", "DEPTH   shallow:deep:hard", "", "ZONE", "CNPS/S", "MARKED/S"
    );
    let mut lines = vec![Text::styled(head, TITLE)];
    if queues.is_empty() {
        lines.push(Text::styled(
            "no queue is watched, and none has held anything",
            DIM,
        ));
    }
    lines.extend(queues.iter().map(|line| queue_line(line, width)));
    frame.render_widget(Paragraph::new(lines), area);
}

fn queue_line(line: &Line<'_>, width: usize) -> Text<'static> {
    let (depth, zone) = (
        line.depth(),
        line.watched.map_or("", |watched| &watched.zone),
    );
    let name = format!("{} {}", line.port.name, line.queue.priority);
    let full = line
        .watched
        .map_or(line.queue.peak, |watched| watched.hard / 4 * 5)
        .max(depth);
    Text::from(vec![
        Span::raw(format!("{name:<15}")),
        Span::styled(bar(depth, full, line.watched, width), colour(zone)),
        Span::styled(format!(" {:>8}B ", short(real(depth))), BOLD),
        Span::styled(format!("{zone:<8}"), colour(zone)),
        Span::raw(format!("{:>9} {:>9}", short(line.cnps), short(line.marked))),
    ])
}

/// A bar up to the depth, with a mark where each zone begins.
fn bar(depth: u64, full: u64, watched: Option<&NpccQueue>, width: usize) -> String {
    let place = |bytes: u64| {
        let at = u128::from(bytes) * width as u128 / u128::from(full.max(1));
        usize::try_from(at).unwrap_or(width).min(width)
    };
    let end = if depth == 0 { 0 } else { place(depth).max(1) };
    let mut cells: Vec<char> = (0..width)
        .map(|at| if at < end { '█' } else { '·' })
        .collect();
    for bound in watched.map_or([0; 3], |watched| {
        [watched.shallow, watched.deep, watched.hard]
    }) {
        if bound > 0
            && let Some(cell) = cells.get_mut(place(bound))
        {
            *cell = if place(bound) < end { '▓' } else { '│' };
        }
    }
    cells.into_iter().collect()
}

const fn colour(zone: &str) -> Style {
    match zone.as_bytes() {
        b"hard" => BAD,
        b"deep" => Style::new().fg(Color::LightRed),
        b"shallow" => Style::new().fg(Color::Yellow),
        _ => Style::new().fg(Color::Green),
    }
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    let flows = state.flows();
    let (all, shown) = (flows.len(), usize::from(area.height).saturating_sub(2));
    let above = state.above.min(all.saturating_sub(shown));
    // Columns have to fit: what does not is cut by whichever of them the layout chooses.
    let wide = area.width >= 120;
    let rows: Vec<Row<'static>> = flows
        .iter()
        .skip(above)
        .take(shown)
        .map(|flow| flow_row(flow, wide))
        .collect();
    let order = if state.reversed { "reversed" } else { "first" };
    let matching = if state.filter.is_empty() {
        String::new()
    } else {
        format!(" matching `{}`", state.filter)
    };
    let title = format!(
        "FLOWS{matching}: {all} of {}, by {} {order}",
        state.now.flows.len(),
        state.sort.name()
    );
    let [of_title, of_table] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    frame.render_widget(Paragraph::new(Text::styled(title, TITLE)), of_title);
    let names = [
        "SENDER",
        "RECEIVER",
        "QUEUE",
        "BYTES",
        "CNPS",
        "EVIDENCE",
        "SENDER QP > DEST QP",
        "RESPONSE/REFUSED",
    ];
    let hosts = match area.width {
        128.. => 26,
        120.. => 21,
        _ => 15,
    };
    let widths = [hosts, hosts, 9, 9, 8, 10, 19, 16].map(Constraint::Length);
    let columns = if wide { names.len() } else { names.len() - 2 };
    let header = Row::new(names.into_iter().take(columns)).style(DIM);
    let widths = widths.into_iter().take(columns);
    frame.render_widget(Table::new(rows, widths).header(header), of_table);
    // No key goes further than there is something.
    state.above = above;
}

fn flow_row(flow: &Flow, wide: bool) -> Row<'static> {
    let cnps = flow.cnps + flow.would_send;
    let sender = flow
        .sender_qp
        .map_or_else(|| "?".to_owned(), |qp| format!("{qp:#x}"));
    let said = flow.response.as_ref().or(flow.refused.as_ref()).cloned();
    let mut cells = vec![
        flow.src.clone(),
        flow.dst.clone(),
        format!("{} {}", flow.port, flow.priority),
        format!("{}B", short(real(flow.bytes))),
        cnps.to_string(),
        flow.evidence.clone(),
    ];
    if wide {
        cells.extend([
            format!("{sender} > {:#x}", flow.dest_qp),
            said.unwrap_or_default(),
        ]);
    }
    let style = if flow.cold { DIM } else { Style::new() };
    Row::new(cells).style(style)
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let keys = if state.typing {
        format!("filter: {}_  (Enter keeps it, Esc clears it)", state.filter)
    } else {
        "q quit  s sort  r reverse  / filter  c clear filter  space hold  arrows scroll".to_owned()
    };
    frame.render_widget(
        Paragraph::new(Text::styled(
            keys,
            Style::new().add_modifier(Modifier::REVERSED),
        )),
        area,
    );
}

/// A number with three digits or so, and a letter for its thousands.
fn short(mut value: f64) -> String {
    let mut letters = ["", "K", "M", "G", "T"].into_iter();
    let mut letter = letters.next().unwrap_or_default();
    while value >= 1_000.0
        && let Some(next) = letters.next()
    {
        value /= 1_000.0;
        letter = next;
    }
    if letter.is_empty() || value >= 100.0 {
        format!("{value:.0}{letter}")
    } else {
        format!("{value:.1}{letter}")
    }
}
