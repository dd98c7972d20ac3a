// Every word that the page shows, by language.
export const WORDS = {
  en: {
    language: "Language", road: "The road is", dry: "dry", wet: "wet", icy: "icy", unknown: "unknown",
    confidence: "Confidence", age: "Age of the picture", message: "Last message", view: "What the camera sees",
    noPicture: "No picture", past: "The last ten minutes", health: "Health", events: "Events",
    noEvents: "Nothing has happened yet.", smoke: "Self-test under perturbation", token: "Token", runSmoke: "Run it",
    setup: "Set up the camera crop", about: "Model and versions", ago: "ago", stale: "no message from the daemon",
    passed: "passed", failed: "failed", running: "running …", refused: "refused", least: "least",
    back: "Back", drag: "Drag over the part of the picture that shows the road; its upper edge belongs below the horizon",
    crop: "Crop, in percent of the picture", region: "Region", left: "Left", top: "Top (horizon)", right: "Right",
    bottom: "Bottom", preview: "Show the change", save: "Write the vehicle file", written: "Written; the old file is kept beside it.",
    signIn: "Sign in", signOut: "Sign out", wrongToken: "This is not the token.", tooOften: "Too many wrong tokens; try again in",
    tokenHint: "The token stands in the token file of the computer that serves this page. This browser is remembered for twelve hours.",
    parts: "Show which parts spoke for it", partsComing: "looking …",
    partsHint: "Covering a part made the state less likely: the stronger the colour, the more (last {s} s)",
    names: {},
  },
  de: {
    language: "Sprache", road: "Die Straße ist", dry: "trocken", wet: "nass", icy: "glatt", unknown: "unbekannt",
    confidence: "Sicherheit", age: "Alter des Bildes", message: "Letzte Meldung", view: "Was die Kamera sieht",
    noPicture: "Kein Bild", past: "Die letzten zehn Minuten", health: "Zustand", events: "Ereignisse",
    noEvents: "Noch ist nichts geschehen.", smoke: "Selbsttest unter Störungen", token: "Schlüssel", runSmoke: "Starten",
    setup: "Bildausschnitt einrichten", about: "Modell und Versionen", ago: "her", stale: "keine Meldung vom Dienst",
    passed: "bestanden", failed: "durchgefallen", running: "läuft …", refused: "verweigert", least: "mindestens",
    back: "Zurück", drag: "Den Teil des Bildes aufziehen, der die Straße zeigt; seine obere Kante gehört unter den Horizont",
    crop: "Ausschnitt, in Prozent des Bildes", region: "Bereich", left: "Links", top: "Oben (Horizont)", right: "Rechts",
    bottom: "Unten", preview: "Änderung zeigen", save: "Fahrzeugdatei schreiben", written: "Geschrieben; die alte Datei liegt daneben.",
    signIn: "Anmelden", signOut: "Abmelden", wrongToken: "Das ist nicht der Schlüssel.", tooOften: "Zu viele falsche Schlüssel; wieder in",
    tokenHint: "Der Schlüssel steht in der Schlüsseldatei des Rechners, der diese Seite liefert. Dieser Browser bleibt zwölf Stunden angemeldet.",
    parts: "Zeigen, welche Teile dafür sprachen", partsComing: "wird ermittelt …",
    partsHint: "Ein verdeckter Teil machte den Zustand unwahrscheinlicher: je kräftiger, desto mehr (letzte {s} s)",
    names: {
      true: "ja", false: "nein",
      ok: "in Ordnung", alive: "antwortet", up_s: "läuft seit, s", blind_s: "blind seit, s", frames: "Bilder", dropped: "ausgelassen", rejected: "abgelehnt",
      worker_starts: "Starts des Helfers", swap: "Modellwechsel", smoke: "Selbsttest", rate_hz: "Bilder je s, höchstens", hottest_c: "Temperatur, °C",
      power_mode: "Energiemodus", dropped_share: "Anteil ausgelassen", throttled: "gedrosselt", available_mb: "freier Speicher, MB",
      storage: "Ablage", events_waiting: "wartende Ereignisse", vehicle: "Fahrzeug", version: "Version", model: "Modell",
      settings: "Einstellungen", predictor: "läuft mit", source: "Kamera", boot: "Start", machine: "Rechner",
      state: "Straße", fault_begin: "Störung:", fault_end: "Störung vorbei:", config: "Einstellungen", shutdown: "Ende", gap: "Lücke",
      no_frames: "keine Bilder", model_output: "unbrauchbare Antwort des Modells", low_confidence: "unsicher", settling: "noch unsicher",
      changing: "wechselt", unfamiliar: "ungewohntes Bild", implausible_temperature: "zu warm für Eis", exposure: "zu hell oder zu dunkel",
      low_detail: "kein Bildinhalt", blurred: "unscharf", noise: "Rauschen", frozen: "Bild steht still", frame_size: "andere Bildgröße",
      timestamp: "falsche Bildzeit", obstructed: "verdeckt", decode: "beschädigtes Bild", starting: "startet", offline: "abgemeldet",
      inference_stalled: "Modell antwortet nicht", worker_died: "Helfer beendet", end_of_stream: "Aufnahme zu Ende", failure: "Fehler",
      rehearsal: "Probe", storage_degraded: "Ablage gestört", storage_damaged: "Ablage beschädigt", no_room: "kein Platz",
    },
  },
  fr: {
    language: "Langue", road: "La route est", dry: "sèche", wet: "mouillée", icy: "verglacée", unknown: "inconnue",
    confidence: "Confiance", age: "Âge de l’image", message: "Dernier message", view: "Ce que voit la caméra",
    noPicture: "Pas d’image", past: "Les dix dernières minutes", health: "Santé", events: "Événements",
    noEvents: "Rien ne s’est encore passé.", smoke: "Autotest sous perturbation", token: "Jeton", runSmoke: "Lancer",
    setup: "Régler le cadrage", about: "Modèle et versions", ago: "", stale: "aucun message du service",
    passed: "réussi", failed: "échoué", running: "en cours …", refused: "refusé", least: "au moins",
    back: "Retour", drag: "Tracer la partie de l’image qui montre la route ; son bord supérieur va sous l’horizon",
    crop: "Cadrage, en pour cent de l’image", region: "Zone", left: "Gauche", top: "Haut (horizon)", right: "Droite",
    bottom: "Bas", preview: "Voir le changement", save: "Écrire le fichier du véhicule", written: "Écrit ; l’ancien fichier reste à côté.",
    signIn: "Se connecter", signOut: "Se déconnecter", wrongToken: "Ce n’est pas le jeton.", tooOften: "Trop de faux jetons ; réessayer dans",
    tokenHint: "Le jeton est dans le fichier de jeton de l’ordinateur qui sert cette page. Ce navigateur reste connecté douze heures.",
    parts: "Montrer quelles parties ont compté", partsComing: "recherche …",
    partsHint: "Cacher une partie rendait l’état moins probable : plus la couleur est forte, plus elle comptait (dernières {s} s)",
    names: {
      true: "oui", false: "non",
      ok: "en ordre", alive: "répond", up_s: "en marche depuis, s", blind_s: "aveugle depuis, s", frames: "images", dropped: "sautées", rejected: "rejetées",
      worker_starts: "démarrages de l’auxiliaire", swap: "changement de modèle", smoke: "autotest", rate_hz: "images par s, au plus", hottest_c: "température, °C",
      power_mode: "mode d’énergie", dropped_share: "part sautée", throttled: "ralenti", available_mb: "mémoire libre, Mo",
      storage: "stockage", events_waiting: "événements en attente", vehicle: "véhicule", version: "version", model: "modèle",
      settings: "réglages", predictor: "calculé par", source: "caméra", boot: "démarrage", machine: "ordinateur",
      state: "route", fault_begin: "défaut :", fault_end: "fin du défaut :", config: "réglages", shutdown: "arrêt", gap: "lacune",
      no_frames: "pas d’images", model_output: "réponse inutilisable du modèle", low_confidence: "incertain", settling: "encore incertain",
      changing: "changement", unfamiliar: "image inhabituelle", implausible_temperature: "trop chaud pour du verglas",
      exposure: "trop clair ou trop sombre", low_detail: "image vide", blurred: "flou", noise: "bruit", frozen: "image figée",
      frame_size: "autre taille d’image", timestamp: "heure d’image fausse", obstructed: "masquée", decode: "image abîmée",
      starting: "démarrage", offline: "déconnecté", inference_stalled: "le modèle ne répond pas", worker_died: "auxiliaire arrêté",
      end_of_stream: "fin de l’enregistrement", failure: "erreur", rehearsal: "répétition", storage_degraded: "stockage perturbé",
      storage_damaged: "stockage abîmé", no_room: "plus de place",
    },
  },
};

const wanted = (localStorage.getItem("language") || navigator.language).slice(0, 2);
export let words = WORDS[wanted] || WORDS.en;

export function useLanguage(code) {
  words = WORDS[code] || WORDS.en;
  localStorage.setItem("language", code);
  document.documentElement.lang = code;
  for (const part of document.querySelectorAll("[data-text]")) part.textContent = words[part.dataset.text];
}

// Of a figure, an event or a reason; English reads them as the daemon names them.
export const nameOf = (key) => words.names[key] ?? key.replaceAll("_", " ");

export const currentLanguage = () => Object.keys(WORDS).find((code) => WORDS[code] === words);
