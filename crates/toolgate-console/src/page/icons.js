// Drawings of 16 by 16, as lines in the colour of the text beside them.
import { html } from "./core.js";

const SHAPES = {
  now: "M1.5 8h2.8l2-5 3.2 10 2-5h3",
  approvals: "M4 7a4 4 0 0 1 8 0c0 3.6 1.6 4.6 1.6 4.6H2.4S4 10.6 4 7M6.5 14h3",
  runs: "M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  inbox: "M2 9.5 4 3h8l2 6.500V13H2zM2 9.500h3.500l1 1.500h3l1-1.500H14",
  changes: "M8 2.500v6M5 5.500h6M5 13h6",
  quarantine: "M8 1.5 13.5 4v4c0 3.5-2.5 5.5-5.5 6.500C5 13.5 2.5 11.5 2.5 8V4zM5.5 8h5",
  processes: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.500h3",
  policy: "M2 4.500h6M11 4.500h3M2 11.500h3M8 11.500h6M8 3v3h3V3zM5 10v3h3v-3z",
  grants: "M10.5 2.500a3 3 0 1 0 .01 0M8.3 7.7 2.5 13.500M5 11l2 2",
  tools: "M10.6 2.200a3.6 3.6 0 0 0-4.3 4.700L2.2 11l2.8 2.8 4.1-4.100a3.6 3.6 0 0 0 4.7-4.300L11.5 7.7 8.3 4.500z",
  doctor: "M8 1.700a6.3 6.3 0 1 0 .01 0M5.2 8.200l2 2 3.7-4.2",
  search: "M7 2.500a4.5 4.5 0 1 0 .01 0M10.3 10.3 14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M4 4l8 8M12 4l-8 8",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${SHAPES[name]} /></svg>`;

/** The gate, as in the icon of the app. */
export const Mark = () => html`<svg class="mark" viewBox="0 0 64 64" aria-hidden="true"><rect width="64" height="64" rx="14" fill="#12161c" /><path d="M16 50V22a16 16 0 0 1 32 0v28" fill="none" stroke="#5aa2ff" stroke-width="6" stroke-linecap="round" /><path d="M32 24v26" stroke="#e8edf4" stroke-width="6" stroke-linecap="round" /></svg>`;
