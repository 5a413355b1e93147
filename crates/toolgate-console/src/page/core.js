// The one place that names the libraries: everything else imports from here.
import { h, render, Fragment } from "preact";
import { useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect } from "preact/hooks";
import { signal, computed, effect, batch } from "@preact/signals";
import htm from "htm";

export const html = htm.bind(h);
export { h, render, Fragment, useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect, signal, computed, effect, batch };
