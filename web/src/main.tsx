import { render } from "preact";
import { App } from "./app";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/header.css";
import "./styles/access.css";
import "./styles/map.css";
import "./styles/panel.css";
import "./styles/print.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
