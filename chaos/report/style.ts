/** The style sheet of a report. */
export const styleSheet = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --text: #1b2430; --dim: #667085; --rule: #e4e7ec;
  --blue: #2f6fde; --red: #d6364a; --orange: #e08a1e; --green: #2e9e6b; --violet: #8256d0; --teal: #1698a5;
  --brown: #9a6b3f; --pink: #d0579b; --olive: #8b9a2f; --grey: #8a94a3; --dark: #3c4757; --ground: #cfe8dc; }
@media (prefers-color-scheme: dark) { :root { --page: #11161d; --card: #1a212b; --text: #e6eaf0; --dim: #98a3b3;
  --rule: #2b3442; --blue: #6ea2ff; --red: #ff6b7c; --orange: #f2ab4e; --green: #52c790; --violet: #ad8bf0;
  --teal: #4cc3d0; --brown: #c79a6c; --pink: #ec86bd; --olive: #b9c95b; --dark: #c3ccd8; --ground: #24463a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px; }
a { color: var(--blue); }
h1 { font-size: 24px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 16px; margin: 34px 0 10px; }
code { font: 12px/1.5 ui-monospace, monospace; }
header { display: flex; align-items: center; gap: 14px; flex-wrap: wrap; }
.badge { padding: 3px 12px; border-radius: 999px; font-weight: 600; color: #fff; }
.badge.pass { background: #2e9e6b; } .badge.fail { background: #d6364a; }
.sub { color: var(--dim); margin: 4px 0 20px; }
.cards { display: grid; grid-template-columns: repeat(5, 1fr); gap: 10px; }
.card, .panel { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.card { padding: 10px 14px; } .card b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.card span { color: var(--dim); font-size: 12px; }
.panel { padding: 6px 16px 12px; overflow: hidden; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; color: var(--dim); font-weight: 500; font-size: 12px; }
th, td { padding: 6px 8px; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 720px) { .cards { grid-template-columns: repeat(2, 1fr); } }
.verdicts td:nth-child(3), .verdicts th { white-space: nowrap; }
.state { font-weight: 700; width: 20px; } .ok { color: var(--green); } .bad { color: var(--red); }
.verdicts details { margin-top: 4px; } .verdicts summary, .story summary { cursor: pointer; }
.verdicts ul, .story ul { margin: 6px 0; padding-left: 18px; } li { overflow-wrap: anywhere; }
figure { margin: 14px 0 0; } figcaption { display: flex; gap: 14px; flex-wrap: wrap; font-weight: 600; font-size: 13px; margin-bottom: 4px; }
.legend { display: flex; gap: 4px 12px; flex-wrap: wrap; font-weight: 400; color: var(--dim); }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
svg.chart { display: block; width: 100%; height: auto; overflow: visible; }
svg .grid { stroke: var(--rule); } svg .tick, svg .label { fill: var(--dim); font: 11px system-ui, sans-serif; text-anchor: end; }
svg .label { fill: var(--text); } svg .middle { text-anchor: middle; }
svg .tickmark { stroke: var(--dim); } svg .mark { stroke: var(--green); stroke-dasharray: 3 3; }
.charts { position: relative; }
#line { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--dim); opacity: .6; pointer-events: none; display: none; }
#line.healed { display: block; background: none; border-left: 1px dashed var(--green); }
#tip { position: fixed; display: none; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 8px 12px; font-size: 12px; pointer-events: none; box-shadow: 0 4px 18px #0003; z-index: 2; white-space: pre-line; }
.story { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 10px 16px; margin-bottom: 10px; }
.scroll { max-height: 560px; overflow: auto; border: 1px solid var(--rule); border-radius: 8px; }
.happenings { font-size: 12px; table-layout: fixed; } .happenings td { overflow-wrap: anywhere; padding: 4px 8px; }
.happenings thead th { position: sticky; top: 0; background: var(--card); }
.happenings th:nth-child(1) { width: 76px; } .happenings th:nth-child(2) { width: 150px; } .happenings th:nth-child(3) { width: 260px; }
.happenings .time { font-variant-numeric: tabular-nums; color: var(--dim); }
.happenings .detail { color: var(--dim); font: 11px/1.5 ui-monospace, monospace; }
.happenings tr.version td:nth-child(3) { color: var(--blue); font-weight: 600; }
.happenings tr.fault td { background: color-mix(in srgb, var(--orange) 14%, transparent); }
.happenings tr.work td:nth-child(3) { color: var(--violet); font-weight: 600; }
.happenings tr.refused td:nth-child(3) { color: var(--orange); } .happenings tr.unknown td:nth-child(3) { color: var(--red); }
.parameters td:first-child { width: 240px; color: var(--dim); }
`;

/** What the page does by itself: a line and a word about the stretch of time under the pointer. */
export const script = `
const data = JSON.parse(document.getElementById("data").textContent);
const charts = document.querySelector(".charts");
const line = document.getElementById("line");
const tip = document.getElementById("tip");
const clock = (ms) => Math.floor(ms / 60000) + ":" + String(Math.floor(ms / 1000) % 60).padStart(2, "0");
charts.addEventListener("pointermove", (event) => {
  const box = charts.querySelector("svg").getBoundingClientRect();
  const scale = box.width / data.width;
  const left = box.left + data.gutter * scale;
  const right = box.left + (data.width - data.right) * scale;
  const share = (event.clientX - left) / (right - left);
  const shown = share >= 0 && share < 1;
  line.style.display = tip.style.display = shown ? "block" : "none";
  if (!shown) return;
  const index = Math.min(data.texts.length - 1, Math.floor(share * data.texts.length));
  line.style.left = event.clientX - charts.getBoundingClientRect().left + "px";
  tip.textContent = [clock(share * data.lengthMs)].concat(data.texts[index]).join("\\n");
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
});
charts.addEventListener("pointerleave", () => { line.style.display = tip.style.display = "none"; });
`;
